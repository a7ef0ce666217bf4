"""An agent that reads nothing at first, and throws away what was typed until it does."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.hard.stage import declare
from tests.support.product import Done, Product
from tests.support.tmux import wait_until

AGENT = """\
import os, sys, termios, time, tty
go, heard = sys.argv[1:]
print("starting", flush=True)
while not os.path.exists(go):
    time.sleep(0.02)
tty.setraw(0, termios.TCSAFLUSH)
os.write(1, b"\\x1b[?2004hREADY\\r\\n")
while data := os.read(0, 65536):
    with open(heard, "ab") as stream:
        stream.write(data)
"""


def deaf(product: Product, **tmux: float) -> Path:
    """Configure a session whose agent is deaf until it is told; return the file of what it heard."""
    script, heard = product.folder / "deaf.py", product.folder / "heard"
    script.write_text(AGENT)
    command = [sys.executable, "-S", str(script), str(product.folder / "go"), str(heard)]
    harness = {"paste": "bracketed", "start": command, "ready": "READY", "settleMs": 50}
    declare(product, "work", tmux=tmux, harnesses={"deaf": harness})
    text = product.config.read_text().replace("defaultHarness: bundled", "defaultHarness: deaf")
    product.configure(text)
    return heard


def said_to_the_deaf(product: Product, text: str) -> Done:
    """Say it, let the agent read once the message waits for that, and return the command's answer."""
    with ThreadPoolExecutor(1) as beside:
        saying = beside.submit(product.cli, "standing", "say", "work", "--text", text, "--json")
        product.wait_event("standing.queued")
        (product.folder / "go").touch()
        return saying.result()


def messages(heard: Path) -> list[str]:
    """Return the texts that the agent heard and that were submitted, the boot prompt left out."""
    parts = heard.read_bytes().decode().split("\r") if heard.exists() else []
    texts = [part.replace("\x1b[200~", "").replace("\x1b[201~", "") for part in parts if part]
    return [text.split("] ", 1)[1].strip() for text in texts if "[the-loop boot #" not in text]


@pytest.mark.parametrize(
    "served", [pytest.param(False, marks=pytest.mark.long), True], ids=["commands alone", "with the service"]
)
def test_a_message_waits_until_the_agent_reads(alone: Product, served: bool) -> None:
    """What is said while it is deaf is not typed before it reads, and then once; the boot prompt comes first."""
    heard = deaf(alone)
    if served:
        alone.serve()
        wait_until(alone.panes, "the agent's pane is there")
    else:
        _, output = alone.begin("--config", str(alone.config), "standing", "start", "work")
        wait_until(lambda: alone.panes() or output.read_text(), "the agent's pane is there")
        assert output.read_text() == ""

    said = said_to_the_deaf(alone, "can you hear me")
    again = alone.cli("standing", "say", "work", "--text", "and now", "--json")

    assert [(done.code, done.json["state"]) for done in (said, again)] == [(0, "submitted")] * 2
    wait_until(lambda: len(messages(heard)) == 2, "the agent has read both")
    assert messages(heard) == ["can you hear me", "and now"]
    assert heard.read_bytes().count(b"[the-loop boot #") == 1
    assert heard.read_bytes().index(b"[the-loop boot #") < heard.read_bytes().index(b"can you hear me")


@pytest.mark.parametrize(
    "served", [pytest.param(False, marks=pytest.mark.long), True], ids=["commands alone", "with the service"]
)
def test_an_agent_slower_than_its_start_may_take_is_spoken_to_once_it_reads(alone: Product, served: bool) -> None:
    """The start gives up waiting and says so; the message waits on, and arrives once."""
    heard = deaf(alone, startTimeoutSeconds=1)
    if served:
        alone.serve().wait_swept()
    else:
        late = alone.cli("standing", "start", "work", "--json")
        assert (late.code, "has not said within 1 s that it is ready" in late.row["detail"]) == (0, True)

    said = said_to_the_deaf(alone, "can you hear me")

    assert (said.code, said.json["state"]) == (0, "submitted")
    wait_until(lambda: messages(heard), "the agent has read it")
    assert messages(heard) == ["can you hear me"]
