"""What may be the matter with a pane: it is dead, it is somebody else's, somebody scrolls, looks on or types in it."""

import os
import re
import signal
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.integration.hard.stage import declare, person, started, taken_texts, wait_taken
from tests.support.product import Product
from tests.support.tmux import Reader, alive, wait_until

TARGET = "=loop-standing-work:"


@pytest.fixture
def work(alone: Product) -> Product:
    """Give a product with a live session `work`."""
    declare(alone, "work")
    started(alone, "work")
    return alone


def kill_agent(product: Product) -> None:
    """Kill the agent of `work` and wait until tmux tells that its pane is dead."""
    os.kill(product.panes()["work"], signal.SIGKILL)
    wait_until(lambda: product.tmux("display-message", "-p", "-t", TARGET, "#{pane_dead}").strip() == "1", "it is dead")


def test_a_dead_pane_is_told_shown_and_replaced(work: Product) -> None:
    """say is refused with the start command and the tmux server lives; what can be looked at is; start resumes."""
    work.cli("standing", "say", "work", "--text", "before the end")
    conversation = work.record("work")["harnessSessionId"]
    kill_agent(work)

    row = work.cli("standing", "get", "work", "--json").json
    said = work.cli("standing", "say", "work", "--text", "anybody?", "--json")
    shown = work.cli("standing", "screen", "work")
    attached = work.cli("standing", "attach", "work", "--json")
    status = work.cli("status", "--json")
    again = work.cli("standing", "start", "work", "--json")
    after = work.cli("standing", "say", "work", "--text", "after it", "--json")

    assert (row["live"], row["running"]) == ("dead", False)
    assert (said.code, said.json["error"]["code"]) == (1, "not_running")
    assert "standing start work`" in said.json["error"]["remedy"]
    assert "before the end" in shown.out
    assert (attached.code, status.code) == (0, 1)
    assert (again.code, again.row["outcome"]) == (0, "resumed")
    assert after.json["state"] == "confirmed"
    assert work.record("work")["harnessSessionId"] == conversation
    assert taken_texts(work, "work", 2) == ["before the end", "after it"]


def test_a_dead_pane_can_be_stopped(work: Product) -> None:
    """Nothing of it is left, and the session is held."""
    kill_agent(work)

    stopped = work.cli("standing", "stop", "work", "--json")

    assert stopped.code == 0
    assert work.panes() == {}
    assert work.record("work")["hold"]["kind"] == "stopped"


def test_somebody_elses_session_is_named_and_never_touched(alone: Product, tmp_path: Path) -> None:
    """Every verb on the name is refused or fails with how to look at it; its program reads and feels nothing."""
    declare(alone, "work")
    reader = Reader(tmp_path / "reader")
    alone.tmux("-f", "/dev/null", "new-session", "-d", "-s", "loop-standing-work", "/bin/sh", str(reader.launcher))
    reader.wait_ready()
    [pid] = alone.panes().values()

    answers = {verb: alone.cli("standing", verb, "work", "--json") for verb in ("start", "restart", "stop")}
    said = alone.cli("standing", "say", "work", "--text", "not for you", "--json")
    looked = [alone.cli("standing", verb, "work", "--json") for verb in ("attach", "screen")]
    swept = alone.cli("start", "--json")
    row = alone.cli("standing", "get", "work", "--json").json
    alone.cli("stop")

    attach = rf"`tmux -[LS] \S*{alone.socket} attach-session -r -t=loop-standing-work:`"
    for verb, answer in answers.items():
        assert (verb, answer.code, answer.row["outcome"], answer.row["live"]) == (verb, 1, "failed", "foreign")
        assert re.search(attach, answer.row["detail"])
        assert "kill-session" in answer.row["detail"]
    assert (said.code, said.json["error"]["code"]) == (1, "not_running")
    assert [done.code for done in looked] == [1, 1]
    assert (swept.code, swept.json["standingSessions"][0]["outcome"]) == (1, "failed")
    assert (row["live"], row["running"]) == ("foreign", False)
    assert alone.panes() == {"work": pid}
    assert alive(pid)
    assert reader.received() == b""


def test_copy_mode_keeps_its_place_and_the_message_arrives(work: Product) -> None:
    """Whoever scrolls back goes on scrolling."""
    work.tmux("copy-mode", "-t", TARGET)

    said = work.cli("standing", "say", "work", "--text", "quit now", "--json")

    assert said.json["state"] == "confirmed"
    assert taken_texts(work, "work", 1) == ["quit now"]
    assert work.tmux("display-message", "-p", "-t", TARGET, "#{pane_in_mode}").strip() == "1"


def test_who_looks_on_delays_nothing_and_types_nothing(work: Product) -> None:
    """`attach` is read-only: its keys reach no agent, and a message does not wait for them."""
    with person(work, "work") as watcher:
        watcher.press(b"half a thought")
        said = work.cli("standing", "say", "work", "--text", "as ever", "--json")

    assert said.json["state"] == "confirmed"
    assert not work.events("standing.queued")
    assert taken_texts(work, "work", 1) == ["as ever"]
    assert "half a thought" not in work.screen("work")


@pytest.mark.parametrize(
    "served", [pytest.param(False, marks=pytest.mark.long), True], ids=["commands alone", "with the service"]
)
def test_half_typed_text_is_put_aside_and_comes_back(alone: Product, served: bool) -> None:
    """The message waits for a pause, goes in alone, and the person ends their sentence where they were."""
    declare(alone, "work")
    if served:
        alone.serve().wait_swept()
    else:
        started(alone, "work")
    wait_turn_second(alone)
    with person(alone, "work", "--write") as typist:
        typist.type("half a tho")
        said = alone.cli("standing", "say", "work", "--text", "by the way", "--json")
        wait_until(lambda: composer(alone) == "> half a tho", "the half-typed text is back")
        typist.press(b"ught\r")
        wait_taken(alone, "work", "half a thought")

    assert said.json["state"] == "confirmed"
    texts = [text.split("] ")[-1].strip() for text in alone.taken("work")][1:]
    assert texts == ["by the way", "half a thought"]


@pytest.mark.long
def test_who_types_on_and_on_delays_a_message_for_a_minute_at_most(work: Product) -> None:
    """The message goes in between two keys, and every key that was pressed is in the person's own message."""
    wait_turn_second(work)
    over = Event()
    typed: list[str] = []
    with person(work, "work", "--write") as typist:

        def type_on() -> None:
            while not over.wait(0.4):
                typed.append("abcdefghij"[len(typed) % 10])
                typist.press(typed[-1].encode())

        keys = Thread(target=type_on)
        keys.start()
        said = work.cli("standing", "say", "work", "--text", "one minute", "--wait", "90", "--json", seconds=120)
        wait_taken(work, "work", "one minute")
        over.set()
        keys.join()
        typist.press(b"\r")
        wait_until(lambda: len(work.taken("work")) == 3, "the person's own message is taken")

    own = re.sub(r"\[.*?\] ", "", "".join(text for text in work.taken("work")[1:]))
    assert said.json["state"] in ("confirmed", "accepted", "unknown")
    assert work.count("one minute", "work") == 1
    assert sorted(own.replace("one minute", "").strip()) == sorted(typed)


def composer(product: Product) -> str:
    """Return the line in which the agent's next message is being written."""
    lines = [line.rstrip() for line in product.screen("work").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def wait_turn_second(product: Product) -> None:
    """Wait until the second is over in which the boot turn began: tmux tells keys by whole seconds."""
    wait_until(lambda: len(product.taken("work")) == 1, "the boot turn began")
    began = time.time()
    wait_until(lambda: int(time.time()) > began, "its second is over")
