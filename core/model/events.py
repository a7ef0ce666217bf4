"""The names of the events in the event log, and the state diagrams of the documentation. No I/O.

The diagrams are drawn from the tables themselves: `python -m core.model.events [FILE…]` prints them, or fills in each
place between `<!-- diagram: NAME -->` and `<!-- end of diagram -->` in the files given.
"""

import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from core.model import loop, message
from core.model.session import TRANSITIONS, Phase


class Event(StrEnum):
    """Every event there is; a name that is not here cannot be emitted."""

    STANDING_CREATED = "standing.created"
    STANDING_CREATE_FAILED = "standing.create_failed"
    STANDING_STARTED = "standing.started"
    STANDING_RESUMED = "standing.resumed"
    STANDING_RESUME_FAILED = "standing.resume_failed"
    STANDING_SPAWN_FAILED = "standing.spawn_failed"
    STANDING_ADOPTED = "standing.adopted"
    STANDING_EXITED = "standing.exited"
    STANDING_RESTARTED = "standing.restarted"
    STANDING_STOPPED = "standing.stopped"
    STANDING_STOP_FAILED = "standing.stop_failed"
    STANDING_HELD = "standing.held"
    STANDING_PAUSED = "standing.paused"
    STANDING_UNPAUSED = "standing.unpaused"
    STANDING_INTERRUPTED = "standing.interrupted"
    STANDING_DELETED = "standing.deleted"
    STANDING_SAID = "standing.said"
    STANDING_QUEUED = "standing.queued"
    STANDING_REFUSED = "standing.refused"
    STANDING_CONFIRMED = "standing.confirmed"
    STANDING_UNCONFIRMED = "standing.unconfirmed"
    STANDING_ASKED = "standing.asked"  #: a permission or a question waits for an answer in its thread
    STANDING_ASK_REFUSED = "standing.ask_refused"  #: it was not shown, so nobody can allow it in the thread
    STANDING_UNCHECKED = "standing.unchecked"  #: its permission mode's check cannot be reached: it asks by dialogs
    STANDING_ANSWERED = "standing.answered"
    STANDING_POSTED = "standing.posted"  #: an agent said something in its thread by the command
    STANDING_SUPPRESSED = "standing.suppressed"
    STANDING_PASSED_OVER = "standing.passed_over"  #: its messages cannot be moved, or work on it fails otherwise
    STANDING_TAKEN_UP = "standing.taken_up"  #: what kept its messages from being moved is over
    STANDING_COLLECTED = "standing.collected"
    STANDING_TURN_FAILED = "standing.turn_failed"  #: on the model's side; `reason` tells why
    STANDING_RETRYING = "standing.retrying"  #: its program tries a failed request again by itself, `reason` tells which
    STANDING_HOOKS_SILENT = "standing.hooks_silent"  #: its hooks do not report; `reason` tells why, and the remedy
    STANDING_HOOKS_BACK = "standing.hooks_back"
    STANDING_PLAN = "standing.plan"  #: its agent has changed its plan
    STANDING_USAGE = "standing.usage"  #: its agent has used tokens, or a limit was reached or is over
    STANDING_STALLED = "standing.stalled"  #: a turn that has shown no sign of life for long; nothing is done to it
    STANDING_DRIFT = "standing.drift"
    STANDING_ANNOUNCED = "standing.announced"
    STANDING_ANNOUNCE_FAILED = "standing.announce_failed"
    STANDING_TMUX_LOST = "standing.tmux_lost"
    STANDING_TMUX_BACK = "standing.tmux_back"

    PAGE_LINK_MADE = "page.link_made"  #: a link by which one browser can log in
    PAGE_LOGGED_IN = "page.logged_in"
    PAGE_LOGGED_OUT = "page.logged_out"
    PAGE_TYPED = "page.typed"  #: somebody types into a terminal on the page

    CHANNEL_REPLY_RECEIVED = "channel.reply_received"
    CHANNEL_DROPPED = "channel.dropped"
    CHANNEL_MIRRORED = "channel.mirrored"
    CHANNEL_MIRROR_SKIPPED = "channel.mirror_skipped"
    CHANNEL_MIRROR_FAILED = "channel.mirror_failed"
    CHANNEL_POSTED = "channel.posted"
    CHANNEL_POST_FAILED = "channel.post_failed"
    CHANNEL_THREAD_OPENED = "channel.thread_opened"
    CHANNEL_UNBOUND = "channel.unbound"
    CHANNEL_REBOUND = "channel.rebound"  #: the database was lost, and a thread proved to be its session's
    CHANNEL_BACKFILLED = "channel.backfilled"  #: a thread was swept, and replies were caught up
    CHANNEL_EDITED = "channel.edited"  #: an author edited or deleted a message of theirs
    CHANNEL_CONNECTED = "channel.connected"
    CHANNEL_DISCONNECTED = "channel.disconnected"

    LOOP_CREATED = "loop.created"
    LOOP_FIRED = "loop.fired"  #: a turn took its tick, or may have
    LOOP_DEFERRED = "loop.deferred"  #: a due run waits for its session; told once a run
    LOOP_HELD = "loop.held"  #: something keeps it from firing, which `reason` names
    LOOP_FAILED = "loop.failed"  #: a run failed, or a declared loop could not be made
    LOOP_PAUSED = "loop.paused"
    LOOP_RESUMED = "loop.resumed"
    LOOP_SCHEDULED = "loop.scheduled"  #: somebody named its next run, which `detail` tells
    LOOP_STOPPED = "loop.stopped"
    LOOP_COMPLETED = "loop.completed"  #: it has run as often as it was to
    LOOP_EXPIRED = "loop.expired"  #: it was too old

    JOB_STARTED = "job.started"
    JOB_FINISHED = "job.finished"

    WORKSPACE_TRUSTED = "workspace.trusted"
    WORKSPACE_TRUST_FAILED = "workspace.trust_failed"

    SERVICE_STARTED = "service.started"
    SERVICE_STOPPED = "service.stopped"
    SERVICE_DATABASE_BEGUN = "service.database_begun"  #: a new one, though sessions had run
    SERVICE_FILE_GONE = "service.file_gone"  #: what the service works with was removed or replaced, which ends it
    SERVICE_WORKER_FAILED = "service.worker_failed"
    SERVICE_OPERATOR_OVERRIDE = "service.operator_override"  #: an agent's process used --as-operator


def check_event(name: str) -> Event:
    """Return the event of that name. Raises ValueError for one that is not in the list."""
    try:
        return Event(name)
    except ValueError:
        raise ValueError(f"no event is called {name!r}: add it to core/model/events.py") from None


_PLACE = re.compile(r"(<!-- diagram: (?P<name>[a-z-]+) -->\n).*?(<!-- end of diagram -->)", re.DOTALL)


def phases() -> str:
    """Return the phases of a record and what moves it between them, as Mermaid."""
    lines = ["stateDiagram-v2", "    [*] --> settled: first mark", "    [*] --> creating: create"]
    for phase, steps in TRANSITIONS.items():
        lines += [f"    {phase.value} --> {after.value}: {event.value}" for event, after in steps.items()]
    lines += [f"    {phase.value} --> [*]: {why}" for phase, why in _ENDS.items()]
    return "\n".join(lines)


_ENDS = {Phase.CREATING: "it did not come up", Phase.DELETING: "all is gone"}


def messages() -> str:
    """Return the states of a message and what may follow each, as Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {message.MessageState.PENDING.value}"]
    for state, following in message.TRANSITIONS.items():
        after = sorted(next_state.value for next_state in following)
        lines += [f"    {state.value} --> {value}" for value in after] or [f"    {state.value} --> [*]"]
    return "\n".join(lines)


def loops() -> str:
    """Return the states of a loop and what moves it between them, as Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {loop.LoopStatus.ACTIVE.value}: create"]
    for status, steps in loop.TRANSITIONS.items():
        lines += [f"    {status.value} --> {after.value}: {event.value}" for event, after in steps.items()]
        lines += [] if steps else [f"    {status.value} --> [*]"]
    return "\n".join(lines)


DIAGRAMS: Mapping[str, str] = {"phases": phases(), "messages": messages(), "loops": loops()}


def filled(text: str) -> str:
    """Return the document with every diagram as the tables have it now. Raises KeyError for an unknown name."""
    return _PLACE.sub(lambda place: f"{place[1]}```mermaid\n{DIAGRAMS[place['name']]}\n```\n{place[3]}", text)


def main(arguments: list[str]) -> None:
    """Print the diagrams, or fill them into the files."""
    for name in arguments:
        path = Path(name)
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if not arguments:
        sys.stdout.write("\n\n".join(DIAGRAMS.values()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
