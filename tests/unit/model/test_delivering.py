"""Every step of a message's way into a pane, as a pure function of how things stand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model import delivering
from core.model.delivering import (
    Attempt,
    BackToPending,
    Clear,
    MarkPasted,
    MarkSubmitted,
    PaneState,
    Queue,
    Settle,
    Situation,
    Stash,
    Step,
    Submit,
    Timing,
    Wait,
    step,
)
from core.model.gate import Action, Decision
from core.model.harness import IdPolicy, Traits
from core.model.message import IN_FLIGHT, WAITING, InboxRow, Kind, MessageState, NewMessage
from core.model.pane import Receipt
from core.model.reasons import Because, Reason

S = MessageState
IS_PAUSED = Because(Reason.PAUSED, {"ahead": 0})
T0 = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
CLAUDE = Traits(IdPolicy.PREASSIGNED, evidence=True, queues_input=True, clear=b"\x15", stash=b"\x13")
MUTE = Traits(IdPolicy.NONE)
TIMING = Timing(timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=60))
DELIVER = Decision(Action.DELIVER, False, Because(Reason.IDLE), "")
QUEUE = Decision(Action.QUEUE, True, Because(Reason.BUSY), "later")
PERMISSION = Decision(Action.QUEUE, True, Because(Reason.PERMISSION), "attach")
SILENT = Decision(Action.QUEUE, True, Because(Reason.SILENT), "later")
PAUSED = Decision(Action.QUEUE, True, IS_PAUSED, "resume")
REFUSE = Decision(Action.REFUSE, True, Because(Reason.STOPPED), "start it")


def after(seconds: float) -> datetime:
    """Return a moment so many seconds after the message was committed."""
    return T0 + timedelta(seconds=seconds)


def row(state: MessageState = S.PENDING, kind: Kind = Kind.SAY, **changes: Any) -> InboxRow:
    """Return a row of generation 3."""
    message = NewMessage("m-1", "k", "s-1", "scribe", 3, kind, "cli:a", "a", "cli", "k3f9x2", "hi", False, 0, T0)
    return replace(InboxRow(message, 1, state, None, T0), **changes)


def claimed(**changes: Any) -> InboxRow:
    """Return a row that was claimed at T0."""
    return row(S.CLAIMED, **{"attempt": 1, "instance": "i-1", "attempt_deadline": after(5), **changes})


def pasted(**changes: Any) -> InboxRow:
    """Return a row that was pasted at T0."""
    return row(S.PASTED, **{"attempt": 1, "instance": "i-1", "pasted_at": T0, **changes})


def submitted(submits: int = 1, **changes: Any) -> InboxRow:
    """Return a row that was submitted at T0."""
    fixed = {"attempt": 1, "instance": "i-1", "pasted_at": T0, "submitted_at": T0, "submits": submits}
    return row(S.SUBMITTED, **{**fixed, **changes})


def situation(given_row: InboxRow, **changes: Any) -> Situation:
    """Return how things stand for a row: a live idle session of our generation, nobody typing."""
    plain = Situation(given_row, 3, DELIVER, CLAUDE, True, TIMING, PaneState.ALIVE)
    return replace(plain, **changes)


# ---------------------------------------------------------------- waiting


def test_a_message_to_an_idle_session_is_attempted_with_a_deadline() -> None:
    """The server gets the moment after which it must refuse the paste."""
    assert step(situation(row()), after(1)) == Attempt(after(6))


def test_an_attempt_never_outlives_the_row() -> None:
    """Close to the row's expiry the deadline is the expiry."""
    assert step(situation(row()), after(3598)) == Attempt(after(3600))


def test_a_row_that_waited_for_no_expiring_reason_is_delivered_however_old() -> None:
    """What was queued by a turn or a missing service does not expire."""
    old = row(S.QUEUED, because=Because(Reason.BUSY))

    assert step(situation(old), after(7200)) == Attempt(after(7205))


@pytest.mark.parametrize("reason", sorted(delivering.EXPIRING))
def test_a_row_that_waited_for_tmux_or_a_typist_expires(reason: Reason) -> None:
    """Such a row is never delivered after its hour, even when the way is free again."""
    chosen = step(situation(row(S.QUEUED, because=Because(reason))), after(3600))

    assert isinstance(chosen, Settle)
    assert (chosen.state, chosen.note) == (S.EXPIRED, True)


def test_a_row_expires_while_tmux_is_silent() -> None:
    """It need not have been queued for it before."""
    chosen = step(situation(row(), decision=SILENT, pane=PaneState.SILENT), after(3600))

    assert isinstance(chosen, Settle)
    assert chosen.state is S.EXPIRED


@pytest.mark.parametrize("state", [S.PENDING, S.QUEUED])
def test_nothing_expires_under_a_pause(state: MessageState) -> None:
    """However old it is, and whatever tmux does meanwhile."""
    waiting = row(state, because=IS_PAUSED if state is S.QUEUED else None)

    chosen = step(situation(waiting, decision=SILENT, pane=PaneState.SILENT, paused=True), after(7200))

    assert isinstance(chosen, Queue)


def test_what_waited_for_something_else_does_not_expire_at_once() -> None:
    """Its hour begins when it begins to wait for tmux or for a typist."""
    old = row(S.QUEUED, because=IS_PAUSED)
    silent = row(S.QUEUED, because=Because(Reason.SILENT), updated_at=after(7200))

    first = step(situation(old, decision=SILENT, pane=PaneState.SILENT), after(7200))
    second = step(situation(silent, decision=SILENT, pane=PaneState.SILENT), after(7200 + 3600))

    assert isinstance(first, Queue)
    assert isinstance(second, Settle)


def test_an_enter_that_shows_nothing_is_not_doubted_under_a_pause() -> None:
    """The turn-start hook may hold the text back, and then says so; a lost Enter is mended once it is resumed."""
    waiting = situation(submitted(), decision=PAUSED, paused=True)

    assert step(waiting, after(600)) == Wait(None, IS_PAUSED)
    assert step(replace(waiting, decision=DELIVER, paused=False), after(600)) == Submit(2)


def test_what_the_gate_queues_waits_with_reason_and_remedy() -> None:
    """The words are the gate's."""
    assert step(situation(row(), decision=QUEUE), after(1)) == Queue(Because(Reason.BUSY), "later", note=True)


def test_an_answer_to_a_question_waits_and_is_told() -> None:
    """Pasted text is ignored by a question's dialog, and its Enter picks an option: so it is not typed."""
    answer = Decision(Action.ANSWER, False, Because(Reason.QUESTION), "attach")

    assert step(situation(row(), decision=answer), after(1)) == Queue(answer.because, "attach", note=True)


def test_what_the_gate_refuses_is_settled() -> None:
    """Reason, remedy and note are the gate's."""
    assert step(situation(row(), decision=REFUSE), after(1)) == Settle(
        S.REFUSED, Because(Reason.STOPPED), "start it", True
    )


@pytest.mark.parametrize("action", [Action.DROP, Action.RECORD, Action.HOLD, Action.DEFER])
def test_a_wake_that_is_not_for_the_pane_is_put_away(action: Action) -> None:
    """A dropped, recorded, held or deferred wake stays out of the queue."""
    chosen = step(situation(row(), decision=Decision(action, False, Because(Reason.DOWN), "")), after(1))

    assert chosen == Settle(S.CANCELLED, Because(Reason.DOWN))


@pytest.mark.parametrize("generation", [4, None])
def test_a_row_of_an_older_generation_is_void(generation: int | None) -> None:
    """A stop by name or a delete voids what was sent before."""
    chosen = step(situation(row(), generation=generation), after(1))

    assert isinstance(chosen, Settle)
    assert chosen.state is S.CANCELLED


def test_the_allow_list_is_asked_again() -> None:
    """Whoever was taken off it meanwhile steers nobody."""
    chosen = step(situation(row(), authorized=False), after(1))

    assert isinstance(chosen, Settle)
    assert chosen.state is S.REFUSED


def test_a_reply_waits_where_its_allow_list_cannot_be_asked() -> None:
    """A process without the channel does not decide who may steer."""
    chosen = step(situation(row(), authorized=None), after(1))

    assert isinstance(chosen, Queue)
    assert chosen.because.reason == Reason.NEEDS_SERVICE


# ---------------------------------------------------------------- somebody types


def test_typing_delays_a_message() -> None:
    """Five seconds of quiet are waited for."""
    chosen = step(situation(row(), typed_at=after(8), turn_started_at=after(9)), after(10))

    assert chosen == Queue(Because(Reason.TYPING), "wait until nobody has typed for five seconds", until=after(13))


def test_typing_delays_a_message_by_a_minute_at_most() -> None:
    """Then half-typed text is put aside, where the harness can."""
    waiting = row(S.QUEUED, because=Because(Reason.TYPING), updated_at=T0)

    early = step(situation(waiting, typed_at=after(58)), after(59))
    late = step(situation(waiting, typed_at=after(60)), after(60))

    assert isinstance(early, Queue)
    assert early.until == after(60)
    assert late == Stash(after(65))


def test_text_that_was_typed_before_the_turn_is_not_stashed() -> None:
    """The turn took it; a stash key on an empty line could pop an older stash."""
    chosen = step(situation(row(), typed_at=after(1), turn_started_at=after(2)), after(10))

    assert chosen == Attempt(after(15))


def test_a_message_waits_for_half_typed_text_that_cannot_be_stashed() -> None:
    """It says so, and expires like a row that waits for tmux."""
    chosen = step(situation(row(), traits=MUTE, typed_at=after(1)), after(10))

    assert isinstance(chosen, Queue)
    assert chosen.because.reason == Reason.HALF_TYPED
    assert chosen.because.reason in delivering.EXPIRING


def test_a_stash_is_followed_by_the_paste_after_a_rest() -> None:
    """A busy harness that reads the key and the text at once takes both for text, glued to what was typed."""
    stashed = row(S.QUEUED, because=Because(Reason.STASHING), stashed=True, attempt=1, updated_at=after(10))
    there = situation(stashed, typed_at=after(1), receipts={Receipt.STASHED: stashed.token})

    assert step(there, after(10.4)) == Wait(after(11.2), Because(Reason.STASHING))
    assert step(there, after(11.2)) == Attempt(after(16.2))


def test_text_that_a_look_found_is_put_aside_though_nobody_is_attached() -> None:
    """Its client has gone, and nothing but the screen tells of it."""
    assert isinstance(step(situation(row(S.QUEUED), left=True), after(10)), Stash)


def test_a_message_waits_for_text_that_no_key_puts_aside() -> None:
    """There is no key, or the text stands there still behind it; it is tried once."""
    stashed = row(S.QUEUED, because=Because(Reason.STASHING), stashed=True, attempt=1, updated_at=after(10))
    behind = situation(stashed, left=True, receipts={Receipt.STASHED: stashed.token})
    waiting = replace(behind, row=replace(stashed, because=Because(Reason.HALF_TYPED)))

    steps = [step(situation(row(S.QUEUED), left=True, traits=MUTE), after(10)), step(behind, after(12))]
    steps.append(step(waiting, after(20)))

    for chosen in steps:
        assert isinstance(chosen, Queue)
        assert (chosen.because.reason, chosen.note) == (Reason.HALF_TYPED, True)
        assert "remove it there" in chosen.remedy


def test_an_unseen_stash_is_not_repeated_before_its_deadline() -> None:
    """The line may still run; after its deadline the server refuses it."""
    stashed = row(S.QUEUED, because=Because(Reason.STASHING), stashed=True, attempt=1, attempt_deadline=after(15))
    unseen = situation(stashed, typed_at=after(1))

    assert step(unseen, after(15)) == Wait(after(15), Because(Reason.STASHING))
    assert step(unseen, after(16)) == Stash(after(21))


def test_a_second_stash_never_pops_the_first() -> None:
    """Keys after the stash make the message wait."""
    stashed = row(S.QUEUED, because=Because(Reason.STASHING), stashed=True, attempt=1, updated_at=after(10))
    typed = situation(stashed, typed_at=after(11), receipts={Receipt.STASHED: stashed.token})

    first = step(typed, after(17))
    second = step(replace(typed, row=replace(stashed, because=Because(Reason.HALF_TYPED))), after(18))

    assert isinstance(first, Queue)
    assert isinstance(second, Queue)
    assert first.because.reason == second.because.reason == Reason.HALF_TYPED


# ---------------------------------------------------------------- after an unknown one


def test_a_text_that_was_put_aside_is_let_come_back_before_the_next_message() -> None:
    """Its screen shows it a moment after the Enter: a paste in between would be glued to it."""
    back = situation(row(), stash_back_at=T0)
    seen = situation(row(), stash_back_at=T0, left=True)

    assert step(back, T0) == Wait(after(1), Because(Reason.STASH_RETURNING))
    assert step(back, after(1)) == Attempt(after(6))
    assert step(seen, T0) == Stash(after(5))


def test_after_an_unknown_message_the_input_line_is_cleared_first() -> None:
    """Its text may still stand there, and the next would be glued to it."""
    assert step(situation(row(), doubt_since=T0), after(1)) == Clear(after(6))


def test_the_paste_follows_the_clear_keys_after_a_rest() -> None:
    """In one write with a paste a harness takes the keys for text, so they have their own, with a receipt."""
    cleared = row(S.QUEUED, because=Because(Reason.CLEARING), attempt=1, attempt_deadline=after(5), updated_at=after(1))
    there = situation(cleared, doubt_since=T0, receipts={Receipt.CLEARED: cleared.token})

    assert step(there, after(1.3)) == Wait(after(2.2), Because(Reason.CLEARING))
    assert step(there, after(2.2)) == Attempt(after(7.2))


def test_unseen_clear_keys_are_not_repeated_before_their_deadline() -> None:
    """They may still be written by a server that slept."""
    cleared = row(S.QUEUED, because=Because(Reason.CLEARING), attempt=1, attempt_deadline=after(5), updated_at=after(1))
    unseen = situation(cleared, doubt_since=T0)

    assert step(unseen, after(4)) == Wait(after(5), Because(Reason.CLEARING))
    assert step(unseen, after(6)) == Clear(after(11))


def test_a_turn_that_began_since_ends_the_doubt() -> None:
    """Whatever stood in the line went with it."""
    assert step(situation(row(), doubt_since=T0, turn_started_at=after(1)), after(2)) == Attempt(after(7))


@pytest.mark.parametrize(
    ("changes", "detail"),
    [({"traits": MUTE}, Reason.IN_DOUBT), ({"typed_at": after(1)}, Reason.HALF_TYPED)],
)
def test_in_doubt_a_message_waits_for_a_person(changes: dict[str, Any], detail: str) -> None:
    """Without a clear key, or with a person's text in the line, nothing is pasted."""
    chosen = step(situation(row(), doubt_since=T0, **changes), after(10))

    assert isinstance(chosen, Queue)
    assert chosen.because.reason == detail


# ---------------------------------------------------------------- claimed


def test_a_claim_with_its_receipt_was_pasted() -> None:
    """The pane itself says so."""
    there = situation(claimed(), receipts={Receipt.PASTED: "m-1-1"})

    assert step(there, after(1)) == MarkPasted()


def test_a_claim_without_receipt_waits_for_its_deadline() -> None:
    """Until then the line may still run in the server."""
    assert step(situation(claimed()), after(5)) == Wait(after(5), Because(Reason.PASTE_PENDING))


def test_a_claim_without_receipt_after_its_deadline_was_never_pasted() -> None:
    """The server refuses a late line, so it may be tried again; another attempt's receipt counts for nothing."""
    lost = situation(claimed(), receipts={Receipt.PASTED: "m-1-0"})

    assert step(lost, after(5.1)) == BackToPending(Because(Reason.SILENT))


@pytest.mark.parametrize("given_row", [claimed(), pasted(), submitted()], ids=["claimed", "pasted", "submitted"])
def test_a_pane_that_ended_and_left_records_gives_the_row_back(given_row: InboxRow) -> None:
    """The conversation does not know the text, so it can be told again."""
    gone = situation(given_row, pane=PaneState.GONE, durable=True)

    assert isinstance(step(gone, after(10)), BackToPending)


@pytest.mark.parametrize("given_row", [claimed(), pasted(), submitted()], ids=["claimed", "pasted", "submitted"])
def test_a_pane_that_ended_without_records_leaves_the_row_unknown(given_row: InboxRow) -> None:
    """Nobody can tell, so it is said and not repeated."""
    chosen = step(situation(given_row, pane=PaneState.GONE), after(10))

    assert isinstance(chosen, Settle)
    assert (chosen.state, chosen.note) == (S.UNKNOWN, True)


@pytest.mark.parametrize("given_row", [claimed(), pasted(), submitted()], ids=["claimed", "pasted", "submitted"])
def test_a_silent_tmux_decides_nothing(given_row: InboxRow) -> None:
    """Silence is not absence."""
    chosen = step(situation(given_row, pane=PaneState.SILENT), after(10))

    assert chosen == Wait(after(11), Because(Reason.SILENT))


# ---------------------------------------------------------------- pasted


def test_the_enter_comes_after_the_settle_time() -> None:
    """At once after the paste a third of the Enters is lost."""
    assert step(situation(pasted()), after(0.2)) == Wait(after(0.3), Because(Reason.SETTLING))
    assert step(situation(pasted()), after(0.3)) == Submit(1)


def test_a_text_in_many_pastes_is_given_time_to_be_read() -> None:
    """The Enter, and what is done without proof of it, wait longer for each paste."""
    cut = replace(CLAUDE, paste_lines=2, paste_chars=700, paste_pieces=700)
    long = replace(pasted(), message=replace(row().message, text="line\n" * 200))
    entered = replace(long, state=S.SUBMITTED, submitted_at=after(1), submits=1)

    assert step(situation(long, traits=cut), after(0.5)) == Wait(after(0.3 + 0.315), Because(Reason.SETTLING))
    assert step(situation(entered, traits=cut), after(3)) == Wait(after(1 + 1.5 + 2.1), Because(Reason.SETTLING))


@pytest.mark.parametrize("changes", [{"asking": True}, {"decision": PERMISSION}, {"decision": REFUSE}])
def test_no_enter_while_a_dialog_is_open_or_the_session_is_held(changes: dict[str, Any]) -> None:
    """An Enter would approve the dialog; a held session starts no turn."""
    chosen = step(situation(pasted(), **changes), after(10))

    assert isinstance(chosen, Wait)


def test_no_enter_right_after_a_tool_call() -> None:
    """The dialog that it may open is not there yet."""
    chosen = step(situation(pasted(), tool_at=after(9.9)), after(10))

    assert chosen == Wait(after(10.9), Because(Reason.TOOL_CALL))


def test_no_text_right_after_a_tool_call() -> None:
    """A dialog that opens as it is read would swallow it (Claude Code 2.1.197)."""
    chosen = step(situation(row(), tool_at=after(9.9)), after(10))

    assert chosen == Wait(after(10.9), Because(Reason.TOOL_CALL))


def test_what_waited_for_a_dialog_waits_for_the_tool_call_next() -> None:
    """Whoever watches it is not told of a dialog that is over, and waits for the moment that is left."""
    waiting = row(S.QUEUED, because=Because(Reason.PERMISSION))

    chosen = step(situation(waiting, tool_at=after(9.9)), after(10))

    assert chosen == Queue(Because(Reason.TOOL_CALL), until=after(10.9))


def test_an_enter_that_left_its_receipt_is_not_written_again() -> None:
    """We died between the write and the row."""
    there = situation(pasted(), receipts={Receipt.SUBMITTED: "m-1-1-1"})

    assert step(there, after(10)) == MarkSubmitted(1)


# ---------------------------------------------------------------- submitted


def test_evidence_is_waited_for() -> None:
    """The window is a second and a half."""
    assert step(situation(submitted()), after(1)) == Wait(after(1.5), Because(Reason.SETTLING))


def test_a_harness_that_is_slow_to_record_is_given_its_time() -> None:
    """An Enter too early is one too many, and a fate that is told too early is a wrong one."""
    slow = replace(CLAUDE, recorded_within=5.0)

    assert step(situation(submitted(), traits=slow), after(4)) == Wait(after(5), Because(Reason.SETTLING))
    assert step(situation(submitted(), traits=slow), after(5.1)) == Submit(2)


def test_one_lone_enter_follows() -> None:
    """What usually is lost is the Enter, never the text."""
    assert step(situation(submitted()), after(1.6)) == Submit(2)


def test_a_second_enter_is_not_written_twice() -> None:
    """Its receipt is read first."""
    there = situation(submitted(), receipts={Receipt.SUBMITTED: "m-1-1-2"})

    assert step(there, after(1.6)) == MarkSubmitted(2)


@pytest.mark.parametrize(
    "changes",
    [
        {"row": submitted(2)},
        {"row": submitted(stashed=True)},
        {"asking": True},
        {"decision": PERMISSION},
        {"typed_at": after(1)},
        {"row": replace(submitted(), message=row(kind=Kind.BOOT).message), "timing": TIMING},
    ],
    ids=["second", "stashed", "asking", "permission", "typed", "argument"],
)
def test_without_evidence_and_without_another_enter_it_is_unknown(changes: dict[str, Any]) -> None:
    """It is said where the message came from, with the reason why nothing more is done."""
    chosen = step(replace(situation(submitted()), **changes), after(31))

    assert isinstance(chosen, Settle)
    assert (chosen.state, chosen.note) == (S.UNKNOWN, True)


def test_a_lone_enter_too_waits_after_a_tool_call() -> None:
    """The margin is the same for every Enter."""
    assert isinstance(step(situation(submitted(), tool_at=after(1.5)), after(1.6)), Wait)


def test_a_harness_without_evidence_gets_one_enter() -> None:
    """Submitted is all that can be said of it."""
    chosen = step(situation(submitted(), traits=MUTE, provable=False), after(0.1))

    assert chosen == Settle(S.SUBMITTED, Because(Reason.UNPROVEN))


def test_a_boot_prompt_is_given_the_time_of_a_start() -> None:
    """It travelled as an argument, and a start takes longer than a paste."""
    boot = replace(submitted(), message=row(kind=Kind.BOOT).message)

    assert step(situation(boot), after(29)) == Wait(after(30), Because(Reason.SETTLING))


# ---------------------------------------------------------------- for all

ROWS = st.sampled_from(
    [
        row(),
        row(S.QUEUED),
        row(S.QUEUED, because=Because(Reason.STASHING), stashed=True, attempt=1),
        row(S.QUEUED, attempt=2),
        claimed(),
        claimed(stashed=True),
        pasted(),
        submitted(),
        submitted(2),
        submitted(stashed=True),
    ]
)
MOMENTS = st.one_of(st.none(), st.floats(0, 4000).map(after))
SITUATIONS = st.builds(
    Situation,
    row=ROWS,
    generation=st.sampled_from([None, 3, 4]),
    decision=st.sampled_from([DELIVER, QUEUE, PERMISSION, SILENT, REFUSE]),
    traits=st.sampled_from([CLAUDE, MUTE]),
    provable=st.booleans(),
    timing=st.just(TIMING),
    pane=st.sampled_from(PaneState),
    receipts=st.dictionaries(st.sampled_from(Receipt), st.sampled_from(["m-1-1", "m-1-1-1", "m-1-1-2", "m-9-1"])),
    durable=st.booleans(),
    asking=st.booleans(),
    tool_at=MOMENTS,
    typed_at=MOMENTS,
    turn_started_at=MOMENTS,
    doubt_since=MOMENTS,
    authorized=st.sampled_from([True, False, None]),
)


@given(SITUATIONS, st.floats(0, 4000).map(after))
def test_every_situation_has_a_step_that_is_safe(s: Situation, now: datetime) -> None:
    """Text is written only where the gate delivers and nothing is in flight; no Enter where a dialog may be open."""
    chosen: Step = step(s, now)

    if isinstance(chosen, Attempt | Stash):
        assert s.row.state in WAITING
        assert s.tool_at is None or now >= s.tool_at + delivering.TOOL_MARGIN
        assert s.decision is DELIVER
        assert s.generation == 3
        assert now < chosen.deadline
    if isinstance(chosen, Submit):
        assert s.row.state in IN_FLIGHT
        assert s.pane is PaneState.ALIVE
        assert not s.asking
        assert s.decision is DELIVER
        assert chosen.number == s.row.submits + 1 <= delivering.MAX_SUBMITS
        assert s.tool_at is None or now >= s.tool_at + delivering.TOOL_MARGIN
    if isinstance(chosen, BackToPending):
        assert s.row.state in IN_FLIGHT
        assert s.durable or (s.row.state is S.CLAIMED and now > after(5))
    if isinstance(chosen, Wait) and chosen.until is not None:
        assert chosen.until >= now


@pytest.mark.parametrize(
    "given_row", [claimed(), row(S.QUEUED, because=Because(Reason.CLEARING), attempt_deadline=after(5))]
)
def test_a_look_before_the_deadline_shows_no_lost_attempt(given_row: InboxRow) -> None:
    """The server may have written after it, however long ago the look is by the time of the decision."""
    early, late = (situation(given_row, looked_at=after(seconds)) for seconds in (4.9, 5.1))

    waits, chosen = step(early, after(60)), step(late, after(60))

    assert isinstance(waits, Wait)
    assert not isinstance(chosen, Wait)
