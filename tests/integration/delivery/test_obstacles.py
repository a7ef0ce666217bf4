"""What may stand in a message's way: dialogs, copy mode, typists, a deaf agent, a silent tmux, an ended session."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.errors import InvalidValue, NotPermitted, NotRunning, Refused, UnknownSession
from core.delivery.deliverer import Deliverer
from core.delivery.saying import NO_SERVICE, say
from core.harness.catalogue import Harnesses
from core.lifecycle.pause import pause_standing, resume_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.harness import Harness, Launch, SessionContext, Transcript
from core.model.message import MessageState
from core.model.pane import Paste, Receipt, Written
from core.model.reasons import Reason
from core.model.session import Outcome
from core.session.folder import TOOL
from core.session.system import System
from core.tmux.runner import Runner
from embedded.adapter import BundledHarness
from tests.integration.delivery.conftest import open_dialog, settle
from tests.support.talking import record_of, rows, taken, talking, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.typist import Typist
from tests.support.world import ACTOR, World, events

S = MessageState
TARGET = "=loop-standing-scribe:"


class FreezingRunner(Runner):
    """Drives a tmux that stops at the moment of a write."""

    pid = 0

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Written:
        """Stop the server, then write."""
        os.kill(self.pid, signal.SIGSTOP)
        return super().write(instance, data, receipt, token, deadline)

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        """Stop the server, then paste."""
        os.kill(self.pid, signal.SIGSTOP)
        return super().paste_all(pastes)


class NumbHarness(BundledHarness):
    """A program that notes what it reads and tells nobody, of which its adapter believes that it would."""

    traits = replace(BundledHarness.traits, boot_signal=False, prompt_argument=False)

    def __init__(self, heard: Path) -> None:
        self._heard = heard

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Run a program that only reads."""
        return Launch(("/bin/sh", "-c", 'stty raw -echo; echo READY; exec cat >>"$0"', str(self._heard)))

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Keep none."""
        return None

    def screen_ready(self, screen: str) -> bool | None:
        """Return whether the program has said that it reads."""
        return "READY" in screen


class NumbHarnesses(Harnesses):
    """A catalogue of the numb one alone."""

    def __init__(self, heard: Path) -> None:
        self._harness = NumbHarness(heard)

    def get(self, name: str) -> Harness:
        """Return it."""
        return self._harness


def finish(system: System, seconds: float = PATIENCE) -> list[MessageState]:
    """Deliver what waits, and return what became of the messages."""
    uid, _ = record_of(system)
    Deliverer(system).run(uid, rows(system)[-1].message.id, system.clock.now() + timedelta(seconds=seconds))
    return [row.state for row in rows(system)]


def test_an_open_permission_dialog_gets_no_enter(scribe: System, private: PrivateTmux) -> None:
    """The message waits, nothing is approved, and it goes in once the person has answered."""
    asking = open_dialog(scribe, private)

    said = say(scribe, "scribe", "and then this", actor=ACTOR)

    assert said.state is S.QUEUED
    assert "permission" in said.messages[0]
    assert NO_SERVICE in said.messages[0]
    assert asking.exists()
    assert not any("and then this" in text for text in taken(scribe))

    private.tmux("send-keys", "-t", TARGET, "Enter")
    settle(scribe)

    assert finish(scribe)[-1] is S.CONFIRMED
    assert times(scribe, "and then this") == 1


def test_a_dialog_that_opens_after_the_paste_gets_no_enter(scribe: System) -> None:
    """The marker is read last, right before the Enter is written."""
    uid, _ = record_of(scribe)
    asking = scribe.paths.session(uid) / "asking"
    deliverer = Deliverer(scribe)
    say(scribe, "scribe", "too late", actor=ACTOR, wait=0)
    deliverer.advance(uid)
    pasted = rows(scribe)[0].state
    asking.touch()

    for _ in range(3):
        deliverer.advance(uid)
    during = rows(scribe)[0].state
    asking.unlink()

    assert (pasted, during) == (S.PASTED, S.PASTED)
    assert finish(scribe) == [S.CONFIRMED]


def test_copy_mode_takes_nothing_away(scribe: System, private: PrivateTmux) -> None:
    """A person who scrolls keeps the place, and the message arrives whole and submitted."""
    private.tmux("copy-mode", "-t", TARGET)

    said = say(scribe, "scribe", "read on", actor=ACTOR)

    assert said.state is S.CONFIRMED
    assert private.tmux("display-message", "-p", "-t", TARGET, "#{pane_in_mode}").strip() == "1"


def test_a_read_only_client_delays_nothing(scribe: System, private: PrivateTmux) -> None:
    """Whoever only looks cannot have typed."""
    watcher = Typist(private, "loop-standing-scribe", "-r")
    try:
        said = say(scribe, "scribe", "as ever", actor=ACTOR)
    finally:
        watcher.close()

    assert said.state is S.CONFIRMED
    assert not events(scribe, "standing.queued")


def test_half_typed_text_comes_back_after_the_message(scribe: System, typist: Typist) -> None:
    """The message is sent alone, and the person goes on where they were."""
    typist.type("half a thought")
    typist.rest()

    said = say(scribe, "scribe", "by the way", actor=ACTOR)

    assert said.state is S.CONFIRMED
    assert rows(scribe)[0].stashed
    wait_until(lambda: typist.screen().rstrip().splitlines()[-1:] and "half a thought" in typist.screen(), "it is back")
    assert not any("half a thought" in text for text in taken(scribe))


def test_text_whose_typist_has_gone_is_put_aside_all_the_same(scribe: System, private: PrivateTmux) -> None:
    """No client tells of it: the screen does, before each message, and none is glued to it."""
    typist = Typist(private, "loop-standing-scribe")
    try:
        typist.type("half a thought")
    finally:
        typist.close()

    first = say(scribe, "scribe", "by the way", actor=ACTOR, wait=20)
    second = say(scribe, "scribe", "and another", actor=ACTOR, wait=20)

    assert (first.state, second.state) == (S.CONFIRMED, S.CONFIRMED)
    assert [row.stashed for row in rows(scribe)] == [True, True]
    assert not any("half a thought" in text for text in taken(scribe))
    wait_until(lambda: typist.screen().rstrip().endswith("> half a thought"), "it is back")


def test_a_message_waits_while_somebody_types(scribe: System, typist: Typist) -> None:
    """Five seconds of quiet come first; who cannot wait so long is told why."""
    typist.type("just a")

    said = say(scribe, "scribe", "hello", actor=ACTOR, wait=1)

    assert said.state is S.QUEUED
    assert said.reason == Reason.TYPING


@pytest.mark.parametrize(
    "text",
    [
        "done;",
        ";",
        "--",
        "-x",
        "Enter",
        "a\r\nb",
        "日本語 ✓ 👩‍👩‍👧",
        "ESC\x1b[201~!touch x",
        "nul\x00here",
        "/cost",
        "!ls",
        "# note",
        "look at @a",
        "back\\",
        "exit",
        "#{pane_pid} #(ls) $HOME `ls`",
        "x" * 20_000,
        "y" * 120_000,
        "z" * 1_000_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_any_text_arrives_once_as_text(scribe: System, text: str) -> None:
    """No text acts on the terminal, is cut, doubled or taken for a command."""
    said = say(scribe, "scribe", text, actor=ACTOR, wait=PATIENCE)

    assert said.state is S.CONFIRMED
    [row] = rows(scribe)

    def shown_texts() -> list[str]:
        return [told for told in taken(scribe) if f"#{row.message.marker}]" in told]

    wait_until(shown_texts, "the conversation's file has it")  # the hook comes before the line
    [shown] = shown_texts()
    if len(text) <= 50_000:
        kept = text.replace("\r\n", "\n").replace("\x1b", "").replace("\x00", "")
        assert shown.split("] ", 1)[1].strip() == kept.strip()
    else:
        file = scribe.paths.session(row.message.uid) / f"message-{row.message.id}.txt"
        assert file.read_text() == text or shown.split("] ", 1)[1].strip() == text


def test_control_characters_that_were_left_out_are_told(scribe: System) -> None:
    """The sender learns that not everything arrived."""
    said = say(scribe, "scribe", "a\x1bb\x00", actor=ACTOR)

    assert "2 control characters were left out" in said.messages


def test_a_frozen_tmux_answers_in_time_and_gets_nothing_after_the_expiry(
    scribe: System, quick: System, private: PrivateTmux
) -> None:
    """Every say ends as queued; once expired it is never delivered, though the server goes on."""
    limits = quick.settings.limits._replace(message_expiry_minutes=0.05)
    soon = replace(quick, settings=quick.settings._replace(limits=limits))

    with private.frozen():
        said = say(soon, "scribe", "never mind", actor=ACTOR, wait=3)
        expires = rows(soon)[0].updated_at + timedelta(minutes=0.05)
        wait_until(lambda: soon.clock.now() > expires, "the row's time is over")

    states = finish(soon)

    assert said.state is S.QUEUED
    assert said.reason == Reason.SILENT
    assert states == [S.EXPIRED]
    settle(soon)
    assert not any("never mind" in text for text in taken(soon))


def test_a_paste_that_slept_in_a_frozen_tmux_is_not_doubled(
    scribe: System, quick: System, private: PrivateTmux
) -> None:
    """The line refuses itself after its deadline, or left its receipt: one text arrives."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "only once", actor=ACTOR, wait=0)
    runner = FreezingRunner(private.server, private.server.process(), timeout=1.5)
    runner.pid = private.pid()

    Deliverer(replace(quick, runner=runner)).advance(uid)
    claimed = rows(scribe)[0]
    os.kill(runner.pid, signal.SIGCONT)
    states = finish(scribe)

    assert (claimed.state, claimed.attempt) == (S.CLAIMED, 1)
    assert states == [S.CONFIRMED]
    assert times(scribe, "only once") == 1


def test_a_harness_without_evidence_is_submitted_once(world: World) -> None:
    """One Enter, and the honest answer that nothing more can be known."""
    system = talking(world, "mute")
    assert start_standing(system, "scribe", ACTOR).ok

    said = say(system, "scribe", "hello\nworld", actor=ACTOR)

    heard = world.folder / "heard"
    wait_until(lambda: heard.read_bytes().count(b"\x1b[201~\r") >= 2, "the boot's Enter and this one are heard")
    text = heard.read_bytes()
    [row] = rows(system)
    assert (said.state, said.delivered, row.final) == (S.SUBMITTED, False, True)
    assert text.count(b"hello\nworld") == 1
    assert text.count(f"#{row.message.marker}]".encode()) == 1
    assert text.endswith(b"\x1b[201~\r")
    assert system.inbox.unsettled(row.message.uid) == ()


def test_what_no_record_shows_is_unknown_and_the_next_message_is_not_glued_to_it(world: World) -> None:
    """Two Enters at most, then it is said; the next message empties the input first."""
    heard = world.folder / "heard"
    system = replace(talking(world, "numb"), harnesses=NumbHarnesses(heard))
    assert start_standing(system, "scribe", ACTOR).ok

    first = say(system, "scribe", "are you there", actor=ACTOR, wait=PATIENCE)
    second = say(system, "scribe", "and now", actor=ACTOR, wait=PATIENCE)

    clear = BundledHarness.traits.clear or b""
    boot, after_boot, after_first = (part for part in heard.read_bytes().split(clear) if part)
    assert (first.state, second.state) == (S.UNKNOWN, S.UNKNOWN)
    assert [row.submits for row in rows(system)] == [2, 2]
    assert boot.count(b"[the-loop boot #") == 1
    assert after_boot.count(b"are you there") == 1
    assert after_first.count(b"and now") == 1
    assert [part[-2:] for part in (boot, after_boot, after_first)] == [b"\r\r"] * 3


def test_a_pause_says_that_a_message_on_its_way_may_begin_a_turn(world: World) -> None:
    """Nobody is told that no turn was running while nothing shows yet what an Enter of a moment ago has begun."""
    system = replace(talking(world, "numb"), harnesses=NumbHarnesses(world.folder / "heard"))
    assert start_standing(system, "scribe", ACTOR).ok
    [before] = pause_standing(system, "scribe", ACTOR, hard=True).sessions
    resume_standing(system, "scribe", ACTOR)
    say(system, "scribe", "are you there", actor=ACTOR, wait=0)
    deliverer, uid = Deliverer(system), record_of(system)[0]
    wait_until(lambda: (deliverer.advance(uid), rows(system)[-1].state is S.SUBMITTED)[1], "its Enter is written")

    [told] = pause_standing(system, "scribe", ACTOR, hard=True).sessions

    assert (before.outcome, told.outcome) == (Outcome.PAUSED, Outcome.UNCONFIRMED)
    assert "a message was on its way to its program, and may still begin a turn" in told.detail


# ---------------------------------------------------------------- refusals


def test_say_refuses_an_unknown_name(system: System) -> None:
    """Nobody is called so."""
    with pytest.raises(UnknownSession, match="nobody"):
        say(system, "nobody", "hi", actor=ACTOR)


def test_say_refuses_empty_text(scribe: System) -> None:
    """Control characters alone are no text."""
    with pytest.raises(InvalidValue, match="empty"):
        say(scribe, "scribe", "\x1b\x00 ", actor=ACTOR)


def test_say_never_starts_a_session(system: System) -> None:
    """A declared session that never ran is refused with the exact command that starts it."""
    with pytest.raises(NotRunning, match="`the-loop standing start scribe`"):
        say(system, "scribe", "hi", actor=ACTOR)

    assert system.runner.survey().panes == ()


def test_say_into_a_stopped_session_names_the_start(scribe: System) -> None:
    """A stopped session stays silent until it is started."""
    stop_standing(scribe, "scribe", ACTOR, "")

    with pytest.raises(LookupError, match="`the-loop standing start scribe`"):
        say(scribe, "scribe", "hi", actor=ACTOR)


def test_what_was_taken_in_while_it_ran_waits_for_the_next_start(scribe: System) -> None:
    """Also where nobody had looked at it before the session was ended, as by the first half of a restart."""
    say(scribe, "scribe", "in the last moment", actor=ACTOR, wait=0)

    stop_standing(scribe, None, ACTOR)
    Deliverer(scribe).advance(record_of(scribe)[0])
    [between] = [row for row in rows(scribe, "scribe") if row.message.text == "in the last moment"]
    start_standing(scribe, "scribe", ACTOR)
    until = scribe.clock.now() + timedelta(seconds=PATIENCE)
    after = Deliverer(scribe).run(record_of(scribe)[0], between.message.id, until)

    assert between.state is S.QUEUED
    assert after is not None
    assert after.state is S.CONFIRMED


def test_say_into_a_dead_pane_is_refused_and_tmux_lives(scribe: System, private: PrivateTmux) -> None:
    """A paste into a dead pane would end the whole server (tmux 3.3a)."""
    pid = int(private.tmux("display-message", "-p", "-t", TARGET, "#{pane_pid}"))
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: private.tmux("display-message", "-p", "-t", TARGET, "#{pane_dead}").strip() == "1", "the pane is dead"
    )

    with pytest.raises(NotRunning, match="ended"):
        say(scribe, "scribe", "hi", actor=ACTOR)

    assert private.tmux("list-sessions")


def test_say_refuses_when_too_many_wait(scribe: System, private: PrivateTmux) -> None:
    """The limit is named."""
    few = replace(
        scribe, settings=scribe.settings._replace(limits=scribe.settings.limits._replace(queued_per_session=2))
    )
    for _ in range(2):
        say(few, "scribe", "wait", actor=ACTOR, wait=0)

    with pytest.raises(Refused, match=r"limits.queuedPerSession is 2"):
        say(few, "scribe", "one more", actor=ACTOR, wait=0)


def test_an_agent_may_not_leave_out_the_frame(scribe: System) -> None:
    """Raw text is an operator's."""
    with pytest.raises(NotPermitted, match="frame"):
        say(scribe, "scribe", "/exit", actor="agent:builder", raw=True)


def test_what_was_sent_before_a_stop_by_name_is_never_delivered(scribe: System) -> None:
    """The stop cancels the queue, and the row's generation is void."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "old news", actor=ACTOR, wait=0)
    stop_standing(scribe, "scribe", ACTOR, "")
    assert start_standing(scribe, "scribe", ACTOR).ok

    Deliverer(scribe).advance(uid)

    assert [row.state for row in rows(scribe)] == [S.CANCELLED]
    assert not any("old news" in text for text in taken(scribe))


def stamp_tomorrow(marker: Path) -> None:
    """Give the marker a time that is yet to come, as where the clock was set back."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    marker.touch()
    os.utime(marker, (tomorrow.timestamp(), tomorrow.timestamp()))


def test_a_tool_marker_from_the_future_holds_up_nothing(scribe: System) -> None:
    """The clock was set back: the margin after a tool call is waited out from now on, and then the text goes in."""
    stamp_tomorrow(scribe.paths.session(record_of(scribe)[0]) / TOOL)

    said = say(scribe, "scribe", "after the clock was set back", actor=ACTOR, wait=PATIENCE)

    assert said.state is S.CONFIRMED
    assert times(scribe, "after the clock was set back") == 1


def test_a_report_from_the_future_does_not_hold_up_a_stop(scribe: System) -> None:
    """The moment that a harness gets to write its turn down is counted from now on."""
    instance = record_of(scribe)[1]
    stamp_tomorrow(scribe.paths.spool_of(instance))

    answer = stop_standing(scribe, "scribe", ACTOR)

    assert answer.ok
