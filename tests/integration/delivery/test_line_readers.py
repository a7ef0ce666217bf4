"""Programs that read lines: their terminal keeps some thousand bytes of each, and knows no bracketed paste."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.config.settings import HarnessDeclaration
from core.delivery.saying import say
from core.delivery.writing import CANONICAL_BYTES, line_limit
from core.lifecycle.start import start_standing
from core.model.framing import head
from core.model.message import MessageState
from core.session.system import System
from tests.support.talking import record_of, rows, settings_of
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World

READER = """#!/bin/sh
echo READY
while IFS= read -r line; do printf '%s\\n' "$line" >>{heard}; done
"""


@pytest.fixture
def heard(world: World) -> Path:
    """Give the file in which the program writes each line that it reads."""
    return world.folder / "heard"


@pytest.fixture(params=["auto", "plain", "bracketed"])
def reader(request: pytest.FixtureRequest, world: World, heard: Path) -> Iterator[System]:
    """Give the ports with a session of such a program, whichever way of pasting its configuration names."""
    with running(world, READER.format(heard=heard), request.param) as system:
        yield system


@contextmanager
def running(world: World, program: str, paste: str) -> Iterator[System]:
    """Give the ports with a session of the program, an sh script."""
    path = world.folder / "reader.sh"
    path.write_text(program)
    path.chmod(0o755)
    settings = settings_of(world, "mine")
    declared = HarnessDeclaration("mine", (str(path),))._replace(ready="READY", paste=paste)
    system = world.system(settings._replace(harnesses={**settings.harnesses, "mine": declared}))
    assert start_standing(system, "scribe", ACTOR).ok
    yield system
    system.close()


def lines(heard: Path) -> list[str]:
    """Return what the program has read, but for its boot prompt."""
    found = heard.read_text().splitlines() if heard.exists() else []
    return [line for line in found if " via cli #" in line]


def test_a_line_longer_than_its_terminal_keeps_goes_by_file(reader: System, heard: Path) -> None:
    """It arrives whole, as a file that the line names; what fits arrives as it is."""
    long = "a" * CANONICAL_BYTES + " THE-END"

    said = say(reader, "scribe", long, actor=ACTOR)
    [row] = rows(reader)
    fits = "b" * (CANONICAL_BYTES - len(head(row.message)) - 2)
    also = say(reader, "scribe", fits, actor=ACTOR)

    wait_until(lambda: len(lines(heard)) == 2, "both were read")
    first, second = lines(heard)
    path = first.partition("Read all of it in ")[2].partition(" :")[0]
    assert (said.state, also.state) == (MessageState.SUBMITTED, MessageState.SUBMITTED)
    assert Path(path).read_text() == long
    assert second.partition("] ")[2].strip() == fits


def test_several_lines_go_by_file_and_no_marker_is_read(reader: System, heard: Path) -> None:
    """One message is one line to it."""
    say(reader, "scribe", "first\nsecond\nthird", actor=ACTOR)

    wait_until(lambda: lines(heard), "it was read")
    [line] = lines(heard)
    path = line.partition("Read all of it in ")[2].partition(" :")[0]
    assert Path(path).read_text() == "first\nsecond\nthird"
    assert "200~" not in line


def test_a_program_that_reads_keys_and_asked_for_no_markers_gets_none(world: World, heard: Path) -> None:
    """It reads every key itself; of several lines the first would be sent alone, so that they go by file.

    Before tmux 3.7 nobody can tell whether a program has switched bracketed paste on, and the same holds.
    """
    raw = f"#!/bin/sh\nstty raw -echo\necho READY\nexec cat >>{heard}\n"
    with running(world, raw, "auto") as system:
        say(system, "scribe", "one line", actor=ACTOR)
        say(system, "scribe", "first\nsecond", actor=ACTOR)
        wait_until(lambda: heard.read_bytes().count(b"\r") == 3, "the boot prompt and both were entered")

    _, one, several, _ = heard.read_bytes().decode().split("\r")
    path = several.partition("Read all of it in ")[2].partition(" :")[0]
    assert one.partition("] ")[2].strip() == "one line"
    assert Path(path).read_text() == "first\nsecond"
    assert b"\x1b" not in heard.read_bytes()


def test_the_terminal_tells_how_it_is_read(reader: System) -> None:
    """In canonical mode it keeps so many bytes of a line; of one that cannot be asked no more is relied upon."""
    pane = reader.runner.survey().of_instance(record_of(reader)[1])

    assert pane is not None
    assert line_limit(pane.tty) == CANONICAL_BYTES
    assert line_limit("/dev/nothing") == CANONICAL_BYTES
