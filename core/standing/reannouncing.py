"""announce: a session's announcement brought up to date, or made anew where there is none any more."""

from core.clock import Deadline
from core.domain.announcement import down_text, root_text
from core.domain.buttons import Button
from core.domain.rows import Answer
from core.domain.session import Definition, Outcome, Phase, SessionRecord, Status
from core.effects import Effect, effect
from core.errors import BeingDeleted, CoreError, InvalidValue, Refused
from core.ports import NewPost, OutboundKind, OutboxRow, PostState
from core.process.presence import running_service
from core.session.sessions import Known, definition_of, home_of
from core.standing.announcing import blind_program, root_waits, screen_buttons
from core.standing.common import CHANNEL, Told, lock, told_of, write_record
from core.standing.listing import get_standing, rows_told
from core.standing.threads import part_from_moved
from core.system import System
from core.values import replace

NO_SERVICE = "no service is running, so it waits for the next one: `the-loop start`"
_POSTED_SECONDS, _POLL_SECONDS = 10.0, 0.05
_OVER = frozenset({PostState.SENT, PostState.FAILED, PostState.SKIPPED})


def announce_standing(system: System, name: str, actor: str, wait: float = _POSTED_SECONDS) -> Answer:
    """Announce the session as it is now, and wait up to `wait` seconds for the service to post that.

    Bound: its announcement is edited, and where that turns out to be gone a new one is made. Not bound, or bound in
    another channel than the configured one: a new one. Raises UnknownSession, InvalidValue, RecordUnreadable, and
    Refused where it has no thread to be announced in.
    """
    _announceable(system, name)
    try:
        with lock(system, name, "announce"):
            known, record = _announceable(system, name)
            post = _commit(system, known, record)
        system.poke()
        told = _told(system, post, wait)
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def _announceable(system: System, name: str) -> tuple[Known, SessionRecord]:
    """Return the session that has, or shall have, a thread. Raises what `announce_standing` does."""
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    if known.record is None:
        raise Refused(f"{name} was never started", f"its start announces it: `the-loop standing start {name}`")
    if known.record.phase is Phase.DELETING:
        raise BeingDeleted(f"{name} cannot be announced: it is being deleted", name)
    if not known.definition.slack.enabled:
        where = f"standingSessions.sessions, {name}: slack.enabled: true" if known.declared else ""
        remedy = f"set it in the configuration ({where})" if where else "make it anew with --slack"
        raise Refused(f"{name} has no thread, for its definition does not ask for one", remedy)
    if not system.settings.channel(CHANNEL).enabled:
        raise Refused(
            f"{name} has no thread, for channels.{CHANNEL} is disabled",
            f"set channels.{CHANNEL}.enabled: true, then `the-loop restart`",
        )
    if not home_of(system.settings, known.definition):
        raise Refused(
            f"no channel is configured in which {name} could be announced",
            f"set channels.{CHANNEL}.channel, or the session's slack.channel, to the channel's id",
        )
    return known, known.record


def _commit(system: System, known: Known, record: SessionRecord) -> NewPost:
    """Commit what brings the announcement up to date, and take the definition's channel over. Raises StoreBroken."""
    (text, buttons), home = _present(system, record), home_of(system.settings, known.definition)
    with effect(Effect.ANNOUNCE), system.database.transaction(durable=True):
        part_from_moved(system, record, known.definition)
        bound = system.bindings.of_session(record.uid, CHANNEL) is not None
        kind = OutboundKind.REFRESH if bound or root_waits(system, record.uid) else OutboundKind.ROOT
        post = replace(_post(system, record, kind, text, home), buttons=buttons)
        system.outbox.add([post])
    with effect(Effect.ANNOUNCE_RECORD):
        write_record(system, replace(record, definition=_with_slack(record, known.definition)))
    return post


def _with_slack(record: SessionRecord, definition: Definition) -> Definition:
    return replace(record.definition, slack=definition.slack)


def _present(system: System, record: SessionRecord) -> tuple[str, tuple[Button, ...]]:
    """Return the announcement of the session as it is now, and its buttons."""
    row, about = get_standing(system, record.name), record.definition.description
    lives = record.status is Status.RUNNING if row.running is None else row.running
    if not lives:
        return down_text(record.name, about, record.hold), ()
    since = f"since {record.started_at:%Y-%m-%d %H:%M} UTC" if record.started_at else "still"
    blind = blind_program(system, record)
    how = f"{since}, paused by {record.hold.by}" if record.hold else since
    return root_text(record.name, about, how, blind), screen_buttons(record, blind)


def _post(system: System, record: SessionRecord, kind: OutboundKind, text: str, home: str) -> NewPost:
    moment = int(system.clock.now().timestamp() * 1_000_000)
    return NewPost(
        id=f"p-announce-{record.uid}-{moment}",
        key=f"announce:{record.uid}:{moment}",
        kind=kind,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=text,
        channel=home,
    )


# ---------------------------------------------------------------- what became of it


def _told(system: System, post: NewPost, wait: float) -> Told:
    """Wait for the service, and return what is known of the post then."""
    last = _awaited(system, post.id, wait)
    if last is not None and last.state is PostState.FAILED:
        last = _awaited(system, post.anew().id, wait) or last
    if last is None:
        return Told(Outcome.FAILED, "the announcement is gone from the database")
    if last.state is PostState.SENT:
        edited = last.post.kind is OutboundKind.REFRESH
        return Told(Outcome.ANNOUNCED, "its announcement is up to date" if edited else "it has a new thread")
    if last.state is PostState.FAILED:
        return Told(Outcome.FAILED, f"it could not be announced: {last.detail}")
    if running_service(system.paths.service_lock) is None:
        return Told(Outcome.WAITING, NO_SERVICE)
    return Told(Outcome.WAITING, f"it waits to be posted{f': {last.detail}' if last.detail else ''}")


def _awaited(system: System, post_id: str, wait: float) -> OutboxRow | None:
    """Return the post's row once it is over, no service runs, or the time is up; None where there is no such post."""
    deadline = Deadline(system.clock, wait)
    while True:
        row = system.outbox.get(post_id)
        served = running_service(system.paths.service_lock) is not None
        if row is None or row.state in _OVER or not served or deadline.passed():
            return row
        system.clock.pause(_POLL_SECONDS)
