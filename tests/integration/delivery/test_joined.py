"""What stands in the input line twice, or behind another message of ours, is not entered."""

import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.lifecycle.start import start_standing
from core.model.framing import framed
from core.model.message import MessageState
from core.session.system import System
from tests.support.claims import Case, ClaimedProduct
from tests.support.talking import record_of, rows, taken
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.world import ACTOR

S = MessageState
TARGET = "=loop-standing-scribe:"


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    """Give a session whose program shows its input line as Claude Code does."""
    folder = Path(tempfile.mkdtemp(prefix="lb-"))
    product = ClaimedProduct(folder, ["usual"])
    try:
        case = product.case("usual")
        answer = start_standing(case.system, case.name, ACTOR)
        assert answer.ok, answer.to_json()
        case.wait("over") if case.deeds("began") else None
        yield case
    finally:
        product.close()
        shutil.rmtree(folder, ignore_errors=True)


def paste(case: Case, text: str) -> None:
    """Paste something into the pane, as a line of ours would that ran late."""
    assert case.tmux is not None
    case.tmux("set-buffer", "-b", "late", text)
    case.tmux("paste-buffer", "-p", "-d", "-b", "late", "-t", f"=loop-standing-{case.name}:")


def pasted(system: System, name: str, text: str) -> Deliverer:
    """Bring a message as far as the input line, and return what does the rest."""
    deliverer, (uid, _) = Deliverer(system), record_of(system, name)
    say(system, name, text, actor=ACTOR, wait=0)

    def is_pasted() -> bool:
        deliverer.advance(uid)
        return rows(system, name)[-1].state is S.PASTED

    wait_until(is_pasted, "it is pasted", every=0.02)
    return deliverer


@pytest.mark.parametrize("earlier", [False, True], ids=["twice", "behind another"])
def test_a_text_that_stands_beside_another_of_ours_is_entered_alone(case: Case, earlier: bool) -> None:
    """The line is emptied first, and its turn takes it once."""
    system, name = case.system, case.name
    text = f"the heron {earlier}"
    if earlier:
        say(system, name, "the owl", actor=ACTOR)
        paste(case, framed(rows(system, name)[-1].message))  # of which nobody knows that it stands there
    deliverer = pasted(system, name, text)
    if not earlier:
        paste(case, framed(rows(system, name)[-1].message))
    wait_until(lambda: _screen(case).count("via cli #") > 1, "both stand there")

    uid, _ = record_of(system, name)
    row = deliverer.run(uid, rows(system, name)[-1].message.id, system.clock.now() + timedelta(seconds=PATIENCE))

    assert row is not None
    assert row.state is S.CONFIRMED
    assert [deed.text.split("] ", 1)[1] for deed in case.deeds("received") if text in deed.text] == [text]


def _screen(case: Case) -> str:
    assert case.tmux is not None
    return case.tmux("capture-pane", "-p", "-t", f"=loop-standing-{case.name}:").rpartition("\u276f")[2]


def test_a_text_of_ours_that_was_left_is_not_put_aside(scribe: System, private: PrivateTmux) -> None:
    """It would come back behind the message; a look before the paste shows whose it is, and the line is emptied."""
    say(scribe, "scribe", "the owl", actor=ACTOR)
    private.tmux("set-buffer", "-b", "late", framed(rows(scribe)[-1].message))
    private.tmux("paste-buffer", "-p", "-d", "-b", "late", "-t", TARGET)
    wait_until(lambda: "> [ann via cli" in _last_row(private), "it stands there")

    said = say(scribe, "scribe", "the heron", actor=ACTOR)

    assert said.state is S.CONFIRMED
    assert [text for text in taken(scribe) if "the heron" in text] == [framed(rows(scribe)[-1].message).rstrip()]
    wait_until(lambda: _last_row(private) == ">", f"the line is empty: {_last_row(private)}", 5)


def _last_row(private: PrivateTmux) -> str:
    return private.tmux("capture-pane", "-p", "-t", TARGET).rstrip().rpartition("\n")[2].removeprefix("✻ ").rstrip()
