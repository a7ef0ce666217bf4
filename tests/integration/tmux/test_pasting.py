"""Messages of several sessions pasted in one piece, each guarded by itself, over both transports."""

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.model.pane import Pane, Paste, Receipt, Survey, Written
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, launcher, soon, wait_until
from tests.support.typist import Typist

TARGET = "loop-standing-test"


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> Runner:
    """Give a runner over each transport."""
    return private.runner(ControlTransport(private.server) if request.param == "control" else None)


def receipts(survey: Survey, pane: Pane) -> tuple[str | None, str | None]:
    """Return the receipts of the paste and of its Enter."""
    seen = survey.of_instance(pane.tag)
    assert seen is not None
    return seen.receipts.get(Receipt.PASTED), seen.receipts.get(Receipt.SUBMITTED)


def test_each_pane_gets_its_own_text_and_receipts(private: PrivateTmux, runner: Runner) -> None:
    """An Enter follows where it was asked for, right behind the text."""
    first, heard = private.reading(runner)
    second, heard_too = private.reading(runner, target="loop-standing-two")

    outcomes = runner.paste_all(
        [
            Paste(first.tag, b"for the first; #{pid}", "m-1-1", soon(), "m-1-1-1"),
            Paste(second.tag, b"for the second", "m-2-1", soon()),
        ]
    )

    assert outcomes == (Written.DONE, Written.DONE)
    heard.wait_for(b"for the first; #{pid}\r")
    heard_too.wait_for(b"for the second")
    assert heard.received() == b"for the first; #{pid}\r"
    assert heard_too.received() == b"for the second"
    survey = runner.survey()
    assert receipts(survey, first) == ("m-1-1", "m-1-1-1")
    assert receipts(survey, second) == ("m-2-1", None)
    assert private.tmux("list-buffers") == ""


def test_one_that_is_refused_holds_up_no_other(private: PrivateTmux, runner: Runner) -> None:
    """A dead pane, one that is not there and a late paste are told apart, and nothing of theirs stays behind."""
    pane, heard = private.reading(runner)
    dead = private.spawn(runner, launcher(private.folder / "ends", "exit 0"), target="loop-standing-dead")
    wait_until(lambda: (seen := runner.survey().of_instance(dead.tag)) is not None and seen.dead, "it has ended")

    outcomes = runner.paste_all(
        [
            Paste(dead.tag, b"to nobody", "m-1-1", soon(), "m-1-1-1"),
            Paste("i-none", b"to nobody", "m-2-1", soon()),
            Paste(pane.tag, b"too late", "m-3-1", datetime.now(UTC) - timedelta(seconds=1)),
            Paste(pane.tag, b"in time", "m-4-1", soon()),
        ]
    )

    assert outcomes == (Written.DEAD, Written.ABSENT, Written.LATE, Written.DONE)
    heard.wait_for(b"in time")
    assert heard.received() == b"in time"
    assert private.tmux("list-buffers") == ""


def test_by_an_earlier_look_nothing_is_pasted_where_somebody_is_attached(private: PrivateTmux, runner: Runner) -> None:
    """Who came since the look might be typing; alone again, the pane takes the text."""
    pane, heard = private.reading(runner)
    seen = runner.survey().of_instance(pane.tag)
    assert seen is not None
    person = Typist(private, TARGET)

    watched = runner.paste_all([Paste(pane.tag, b"not now", "m-1-1", soon(), seen=seen)])
    person.close()
    alone = runner.paste_all([Paste(pane.tag, b"now", "m-1-2", soon(), seen=seen)])

    assert watched == (Written.CHANGED,)
    assert alone == (Written.DONE,)
    heard.wait_for(b"now")
    assert heard.received() == b"now"


def test_by_an_earlier_look_nothing_is_pasted_where_other_sessions_show_the_pane(
    private: PrivateTmux, runner: Runner
) -> None:
    """Whoever is attached to those may be typing."""
    pane, heard = private.reading(runner)
    seen = runner.survey().of_instance(pane.tag)
    private.tmux("new-session", "-d", "-s", "beside")
    private.tmux("link-window", "-s", f"={TARGET}:", "-t", "=beside:")

    outcome = runner.paste_all([Paste(pane.tag, b"not now", "m-1-1", soon(), seen=seen)])

    assert outcome == (Written.CHANGED,)
    assert heard.received() == b""


def test_by_an_earlier_look_nothing_is_pasted_after_an_interruption(private: PrivateTmux, runner: Runner) -> None:
    """The text of the turn that was cut off may stand in the input line; a look that knows of it may paste."""
    pane, _ = private.reading(runner)
    before = runner.survey().of_instance(pane.tag)
    assert before is not None
    runner.write(pane.tag, b"\x1b", Receipt.INTERRUPTED, "esc-17", soon())
    after = replace(before, receipts={Receipt.INTERRUPTED: "esc-17"})

    outcomes = runner.paste_all(
        [Paste(pane.tag, b"x", "m-1-1", soon(), seen=before), Paste(pane.tag, b"y", "m-2-1", soon(), seen=after)]
    )

    assert outcomes == (Written.CHANGED, Written.DONE)


def test_a_recent_look_is_one_of_this_process_that_is_no_older(private: PrivateTmux, runner: Runner) -> None:
    """None before the first, the latest then, none once it is too old or tmux was asked in vain."""
    before = runner.recent(60)
    pane, _ = private.reading(runner)

    survey = runner.survey()

    assert before is None
    assert survey.of_instance(pane.tag) is not None
    assert runner.recent(60) == survey
    assert runner.recent(0) is None


def test_a_program_that_is_attached_is_nobody_who_might_type(private: PrivateTmux, runner: Runner) -> None:
    """A control client shows the session to another program."""
    pane, heard = private.reading(runner)
    seen = runner.survey().of_instance(pane.tag)
    command = [*private.server.command, "-C", "attach-session", "-t", f"={TARGET}:"]
    with subprocess.Popen(
        command, env=private.environ, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as client:
        wait_until(lambda: f"client-{client.pid}" in private.tmux("list-clients", "-t", f"={TARGET}"), "it is attached")

        outcome = runner.paste_all([Paste(pane.tag, b"for all that", "m-1-1", soon(), seen=seen)])
        client.kill()

    assert outcome == (Written.DONE,)
    heard.wait_for(b"for all that")
