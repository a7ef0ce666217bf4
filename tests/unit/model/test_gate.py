"""The gate's table, walked cell by cell against one that was written independently of the code."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.gate import (
    STARTS_A_TURN,
    Action,
    Decision,
    GateContext,
    HoldState,
    Observed,
    Wake,
    decide,
    hold_state,
    wake_of,
)
from core.model.message import Kind
from core.model.reasons import Reason
from core.model.session import Definition, Hold, HoldKind, Phase, SessionRecord

PLAIN = GateContext(name="scribe", queues_input=False, restart_due=False, auto_start=False)
RICH = GateContext(name="scribe", queues_input=True, restart_due=True, auto_start=True, kept=True)

# One line a row; columns: say, reply, tick, keep-alive tick, notice, sweep. `+` is a note; `a/b`: plain/rich context.
TABLE = """
never-run   refuse        refuse+        hold     hold     drop     leave/start
down        refuse/queue  refuse+/queue+ hold     hold     drop     leave/start
starting    queue         queue+         defer    defer    queue    wait
idle        deliver       deliver        deliver  deliver  deliver  adopt
busy        queue/deliver queue+/deliver defer    defer    queue    adopt
permission  queue         queue+         defer    defer    queue    adopt
question    queue         answer         defer    defer    queue    adopt
dialog      queue         queue+         defer    defer    queue    adopt
unknown     deliver       deliver        deliver-paced deliver-paced deliver adopt
dead        refuse/queue  refuse+/queue+ fail     rearm    record   leave/resume
lost        refuse/queue  refuse+/queue+ fail     rearm    record   leave/resume
silent      queue         queue+         defer    defer    queue    retry
foreign     refuse        refuse+        hold     hold     record   fail-row
PAUSED      queue         queue+         hold     hold     queue    adopt-held
STOPPED     refuse        refuse+        hold     hold     record   end-leftovers
FAILED      refuse        refuse+        hold     hold     record   end-leftovers
DELETING    refuse        refuse         drop     drop     drop     finish-delete
"""
ROWS = {line.split()[0]: line.split()[1:] for line in TABLE.strip().splitlines()}
PAIRS = [(kind, hold, observed) for kind in Wake for hold in HoldState for observed in Observed]


def expected(kind: Wake, hold: HoldState, observed: Observed, rich: bool) -> tuple[str, bool]:
    """Return the action and note that the table of this module holds for a cell."""
    row = observed.value
    if hold in (HoldState.DELETING, HoldState.STOPPED, HoldState.FAILED) or (
        hold is HoldState.PAUSED and observed.value not in ("foreign", "silent")
    ):
        row = hold.name
    words = ROWS[row][list(Wake).index(kind)].split("/")
    word = words[-1] if rich else words[0]
    return word.rstrip("+"), word.endswith("+")


@pytest.mark.parametrize("rich", [False, True], ids=["plain", "rich"])
@pytest.mark.parametrize(("kind", "hold", "observed"), PAIRS)
def test_every_cell_of_the_table(kind: Wake, hold: HoldState, observed: Observed, rich: bool) -> None:
    """Every wake under every hold and observation is decided as the contract's table says."""
    decision = decide(kind, hold, observed, RICH if rich else PLAIN)

    assert (decision.action.value, decision.note) == expected(kind, hold, observed, rich)


@pytest.mark.parametrize("observed", [Observed.DOWN, Observed.DEAD, Observed.LOST])
def test_what_was_taken_in_while_it_ran_waits_for_the_next_start(observed: Observed) -> None:
    """A stop without a name, a crash and a reboot lose nothing of it; a mark that a person set outranks that."""
    kept = replace(PLAIN, kept=True)

    decision = decide(Wake.REPLY, HoldState.NONE, observed, kept)

    assert (decision.action, decision.note) == (Action.QUEUE, True)
    assert "`the-loop standing start scribe`" in decision.remedy
    assert decide(Wake.REPLY, HoldState.STOPPED, observed, kept).action is Action.REFUSE


@given(
    st.sampled_from(Wake),
    st.sampled_from(HoldState),
    st.sampled_from(Observed),
    st.builds(
        GateContext,
        name=st.just("scribe"),
        queues_input=st.booleans(),
        restart_due=st.booleans(),
        auto_start=st.booleans(),
        ahead=st.integers(0, 500),
    ),
)
def test_the_gate_is_total_and_always_gives_a_reason(
    kind: Wake, hold: HoldState, observed: Observed, context: GateContext
) -> None:
    """There is no combination without a decision, and none without a reason."""
    decision = decide(kind, hold, observed, context)

    assert isinstance(decision, Decision)
    assert decision.because.text
    assert decision.remedy or decision.action not in (Action.REFUSE, Action.QUEUE)


@given(
    st.sampled_from(Wake),
    st.sampled_from([HoldState.STOPPED, HoldState.FAILED, HoldState.DELETING, HoldState.PAUSED]),
    st.sampled_from(Observed),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_no_held_session_ever_starts_a_turn(
    kind: Wake, hold: HoldState, observed: Observed, queues: bool, due: bool, auto: bool
) -> None:
    """Whatever asks and whatever is observed, a session under a hold is given no turn."""
    decision = decide(kind, hold, observed, GateContext("scribe", queues, due, auto))

    assert decision.action not in STARTS_A_TURN


def test_a_refusal_of_a_stopped_session_names_the_start_command() -> None:
    """The remedy is a command that can be typed as it stands."""
    decision = decide(Wake.SAY, HoldState.STOPPED, Observed.DOWN, PLAIN)

    assert "`the-loop standing start scribe`" in decision.remedy


def test_a_permission_is_its_agents_and_its_buttons_come_first() -> None:
    """What asks is no message, and whoever reads the thread need not go to the terminal."""
    decision = decide(Wake.REPLY, HoldState.NONE, Observed.PERMISSION, PLAIN)

    assert decision.because.reason is Reason.PERMISSION
    assert decision.remedy.startswith("allow or deny it in the session's thread")
    assert "`the-loop standing attach scribe --write`" in decision.remedy


def test_a_paused_session_says_how_many_are_ahead() -> None:
    """Whoever writes to a paused session learns their place."""
    decision = decide(Wake.SAY, HoldState.PAUSED, Observed.IDLE, GateContext("scribe", ahead=3))

    assert decision.because.text == "the session is paused; 3 messages are ahead"


def record(phase: Phase = Phase.SETTLED, kind: HoldKind | None = None) -> SessionRecord:
    """Return a record in a phase, with a hold."""
    at = datetime(2026, 11, 29, tzinfo=UTC)
    hold = Hold(kind, "cli:ann", "", at) if kind else None
    return SessionRecord("scribe", "s-1", Definition("scribe"), at, phase=phase, hold=hold)


@pytest.mark.parametrize(
    ("given_record", "state"),
    [
        (None, HoldState.NONE),
        (record(), HoldState.NONE),
        (record(kind=HoldKind.PAUSED), HoldState.PAUSED),
        (record(kind=HoldKind.STOPPED), HoldState.STOPPED),
        (record(kind=HoldKind.FAILED), HoldState.FAILED),
        (record(Phase.DELETING, HoldKind.PAUSED), HoldState.DELETING),
    ],
)
def test_the_mark_is_read_off_the_record(given_record: SessionRecord | None, state: HoldState) -> None:
    """A record's hold is the mark, unless it is being deleted."""
    assert hold_state(given_record) is state


def test_every_row_kind_is_a_wake() -> None:
    """A boot prompt that is pasted asks like a say; every other kind asks as itself."""
    asked = {kind.value: wake_of(kind).value for kind in Kind}

    assert asked == {kind.value: kind.value for kind in Kind} | {"boot": "say"}


@pytest.mark.parametrize("observed", [Observed.PERMISSION, Observed.QUESTION, Observed.DIALOG])
def test_what_the_thread_does_not_show_is_answered_in_the_terminal(observed: Observed) -> None:
    """Nobody is told of a button, or of a reply, that does nothing."""
    shown, unshown = (
        decide(Wake.SAY, HoldState.NONE, observed, GateContext(name="scribe", shown=shown)).remedy
        for shown in (True, False)
    )

    assert "thread" in shown
    assert unshown.startswith("answer it in the terminal: `the-loop standing attach scribe --write`")
