"""Harnesses that the configuration describes."""

import uuid
from pathlib import Path

import pytest

from core.base.errors import HarnessNotInstalled, InvalidValue, UnsupportedHarness
from core.harness.generic import GenericHarness
from core.model.harness import IdPolicy, PasteStyle, Report, SessionContext
from core.model.session import Definition


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session."""
    return SessionContext(
        "scribe", "s-1", "i-1", tmp_path, tmp_path / "s", tmp_path / "spool", tmp_path / "poke", ("--fast",), "the-id"
    )


def test_plain_program_has_no_id_and_its_prompt_is_pasted(context: SessionContext) -> None:
    """Without places in `start` there is neither an id nor a prompt argument, and nothing to resume."""
    harness = GenericHarness("mine", ["sh", "-i"], settle_ms=120, paste="plain", clear=b"\x15")

    assert harness.new_session_id() is None
    assert harness.traits.id_policy is IdPolicy.NONE
    assert harness.traits.paste is PasteStyle.PLAIN
    assert (harness.traits.settle, harness.traits.clear) == (0.12, b"\x15")
    assert (harness.traits.prompt_argument, harness.traits.evidence, harness.traits.turn_gate) == (False, False, False)
    assert not harness.resumable(context)
    assert harness.launch(context, resume=False, prompt="ignored").argv[1:] == ("-i", "--fast")
    with pytest.raises(UnsupportedHarness, match=r"harnesses\.mine\.resume"):
        harness.launch(context, resume=True, prompt=None)


def test_places_are_filled_in_once(context: SessionContext) -> None:
    """Id and prompt go where they belong, a prompt that holds a place stays as it is, and options stay options."""
    harness = GenericHarness(
        "mine", ["sh", "--id={id}", "--", "{prompt}"], resume=["sh", "--resume", "{id}"], ready="^> "
    )

    fresh = harness.launch(context, resume=False, prompt="say {id} and {prompt}")
    silent = harness.launch(context, resume=False, prompt=None)
    resumed = harness.launch(context, resume=True, prompt=None)

    assert uuid.UUID(harness.new_session_id() or "").version == 4
    assert harness.traits.prompt_argument
    assert harness.resumable(context)
    assert fresh.argv[1:] == ("--id=the-id", "--fast", "--", "say {id} and {prompt}")
    assert silent.argv[1:] == ("--id=the-id", "--fast", "--")
    assert resumed.argv[1:] == ("--resume", "the-id", "--fast")
    assert Path(fresh.argv[0]).is_absolute()


def test_ready_sign_is_looked_for_on_every_line() -> None:
    """The declared sign tells when it reads; without one nobody can tell."""
    harness = GenericHarness("mine", ["sh"], ready="^> $")

    assert harness.screen_ready("loading\n> \n") is True
    assert harness.screen_ready("loading\n") is False
    assert GenericHarness("mine", ["sh"]).screen_ready("> ") is None


def test_what_cannot_serve_is_refused(context: SessionContext) -> None:
    """An empty command, a broken expression and a missing program are named."""
    with pytest.raises(InvalidValue, match=r"harnesses\.mine\.start"):
        GenericHarness("mine", [])
    with pytest.raises(InvalidValue, match=r"harnesses\.mine\.ready"):
        GenericHarness("mine", ["sh"], ready="(")
    with pytest.raises(HarnessNotInstalled, match="no-such-program"):
        GenericHarness("mine", ["no-such-program"]).check(Definition("scribe"), ())


def test_it_proves_nothing(context: SessionContext) -> None:
    """No hooks, no record, no second opinion; its folder is made all the same."""
    harness = GenericHarness("mine", ["sh"])

    harness.prepare(context)

    assert context.folder.is_dir()
    assert harness.interpret(Report("i-1", "1.json", {"hook_event_name": "Stop"})) == ()
    assert harness.transcript(context, from_start=True) is None
    assert harness.probe_status(context, 1) is None
