"""Which conversation a start takes up: the session's own, if its harness still finds it, or a new one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.base.errors import InvalidValue, Refused, UnsupportedHarness
from core.base.values import dataclass, replace
from core.model.harness import Harness
from core.model.session import (
    Candidate,
    SessionRecord,
    begun,
    begun_on_request,
    candidates,
    had_turn,
    taken_up,
    taken_up_on_request,
)
from core.session.folder import context_of
from core.session.sessions import Resolved, resolve_record
from core.session.system import System

if TYPE_CHECKING:
    from core.base.paths import StatePaths
    from core.config.settings import Settings
    from core.harness.catalogue import Harnesses
    from core.store.eventlog import EventLog


@dataclass(frozen=True)
class Taken:
    """The record whose next pane is in this conversation, which is resumed or begun anew."""

    record: SessionRecord
    resumed: bool
    returned: bool = False  #: resumed once more, after one that was begun in its place and has had no turn


@dataclass(frozen=True)
class _Choice:
    """Take `resumed` up, or begin anew in the place of `lost` for that reason."""

    resumed: Candidate | None = None
    lost: Candidate | None = None  #: None: nothing had been said
    reason: str = ""


def settled_conversation(
    settings: Settings, paths: StatePaths, harnesses: Harnesses, record: SessionRecord
) -> SessionRecord:
    """Return the record with its latest pane's conversation as the session's, if that has had a turn.

    Raises TrustFailed where its harness's own record cannot be read.
    """
    if record.fresh is None:
        return record
    resolved = resolve_record(record, settings)
    try:
        harness = harnesses.get(resolved.harness)
    except UnsupportedHarness:
        return record  # nobody can tell; what went before it is kept
    answered = harness.answered(context_of(paths, record, resolved, record.instance_id or ""))
    return had_turn(record) if answered else record


def came_up(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> SessionRecord:
    """Return the record of a pane that is up: a harness that cannot tell of turns has its conversation from now on."""
    if record.fresh is None:
        return record
    harness = harnesses.get(resolve_record(record, settings).harness)
    return record if harness.traits.evidence else had_turn(record)


def take_conversation(
    system: System,
    record: SessionRecord,
    resolved: Resolved,
    harness: Harness,
    actor: str,
    gave_up: str,
    wanted: str | None = None,
) -> Taken:
    """Return the record with the conversation that its next pane is in, and tell where an old one is not taken up.

    `gave_up`: how the harness ended when it was to resume it, "" where it was not asked yet. `wanted`: see StartOrder.
    Raises TrustFailed.
    """
    before, now = settled_conversation(system.settings, system.paths, system.harnesses, record), system.clock.now()
    if wanted is not None and not gave_up:
        in_use = resolve_record(before, system.settings).harness
        if wanted:
            after = taken_up_on_request(before, wanted, in_use, f"{actor} went back to another one", now)
        else:
            after = begun_on_request(before, harness.new_session_id(), in_use, f"{actor} began a new one", now)
        return Taken(replace(after, harness_in_use=resolved.harness), resumed=bool(wanted))
    choice = _choose(system, before, resolved, harness)
    if gave_up and choice.resumed is not None:
        choice = _Choice(lost=choice.resumed, reason=f"its program ended instead of taking it up ({gave_up})")
    if choice.resumed is not None:
        after = taken_up(before, choice.resumed, resolve_record(before, system.settings).harness, now)
        returned = before.fresh is not None and after.fresh is None
        return Taken(replace(after, harness_in_use=resolved.harness), resumed=True, returned=returned)
    if choice.lost is not None:
        _say_lost(system.events, before, choice.lost, choice.reason, actor)
    after = begun(before, harness.new_session_id(), choice.lost, choice.reason, now, keeps=bool(gave_up))
    return Taken(replace(after, harness_in_use=resolved.harness), resumed=False)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  #: it becomes an argument of the program, and part of a path


def check_conversation(
    paths: StatePaths, record: SessionRecord | None, resolved: Resolved, harness: Harness, wanted: str
) -> None:
    """Refuse a conversation that the session cannot take up. Raises InvalidValue, Refused, TrustFailed."""
    name = resolved.definition.name
    if not _ID.fullmatch(wanted):
        raise InvalidValue(
            f"{wanted!r} is not the id of a conversation", allowed="an id of `the-loop standing history`"
        )
    if record is None:
        raise Refused(
            f"{name} was never started, so it cannot take up a conversation", f"first `the-loop standing start {name}`"
        )
    left = next((one for one in record.history if one.id == wanted), None)
    if left is not None and left.harness != resolved.harness:
        raise Refused(
            f"{name}: the conversation {wanted} is one of {left.harness}, and its harness is {resolved.harness} now",
            "set the session's harness to that again",
        )
    context = context_of(paths, record, resolved, record.instance_id or "", wanted)
    if not harness.resumable(context):
        raise Refused(
            f"{name}: the conversation {wanted} cannot be taken up: {harness.missing(context)}",
            f"`the-loop standing history {name}` lists those that it had",
        )


def _choose(system: System, record: SessionRecord, resolved: Resolved, harness: Harness) -> _Choice:
    """Return which of the record's conversations this harness can resume, or why it can resume none.

    One that has had no turn is tried where the harness's own records may hold what was said to it.
    """
    refused: _Choice | None = None
    for candidate in candidates(record, resolve_record(record, system.settings).harness):
        if not (candidate.had_turn or harness.traits.evidence):
            continue
        reason = _obstacle(system, record, resolved, harness, candidate)
        if not reason:
            return _Choice(resumed=candidate)
        refused = refused or _Choice(lost=candidate if candidate.had_turn else None, reason=reason)
    return refused or _Choice()


def _obstacle(system: System, record: SessionRecord, resolved: Resolved, harness: Harness, candidate: Candidate) -> str:
    if not system.settings.routing.tmux.resume_on_respawn:
        return "routing.tmux.resumeOnRespawn is false"
    if candidate.harness != resolved.harness:
        return f"its harness is {resolved.harness} now, and was {candidate.harness}"
    context = context_of(system.paths, record, resolved, record.instance_id or "", candidate.id)
    if harness.resumable(context):
        return ""
    before = resolve_record(record, system.settings).cwd
    moved = f", and its cwd was {before}" if before != resolved.cwd else ""
    return harness.missing(context) + moved


def _say_lost(events: EventLog, record: SessionRecord, lost: Candidate, reason: str, actor: str) -> None:
    events.emit(
        "standing.resume_failed",
        level="warning",
        name=record.name,
        actor=actor,
        instance=record.instance_id,
        generation=record.generation,
        reason=f"{reason}; the old id was {lost.id}",
        detail=lost.id,
    )
