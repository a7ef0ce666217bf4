"""A terminal as a picture: drawn from a real pane, without what its text hides, below a dialog and for whoever asks."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from core.base.redaction import redactor_of
from core.base.values import replace
from core.delivery import pictures
from core.delivery.dialogs import show
from core.delivery.pictures import NoPicture, font, picture, post_picture
from core.model.asking import RequestState
from core.model.dialog import Dialog
from core.model.posts import OutboundKind
from core.process import drawing
from core.session.system import System
from tests.support.pressing import threaded
from tests.support.talking import record_of
from tests.support.tmux import wait_until
from tests.support.world import World, recorded

SECRET = "ghp_" + "Ab3" * 12
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def bound(world: World) -> System:
    """Give a session that is up and has a thread."""
    system = threaded(world)
    wait_until(lambda: "Ready" in system.runner.screen(record_of(system)[1], 40), "it shows that it is ready")
    return system


def test_a_real_screen_is_drawn(bound: System) -> None:
    """As a PNG of its size; there is more than its ground on it."""
    made = picture(bound, record_of(bound)[1])

    with Image.open(io.BytesIO(made)) as image:
        assert image.format == "PNG"
        assert image.width > 300
        assert len(image.getcolors(1 << 20) or ()) > 2


def test_what_the_text_hides_is_not_in_the_picture(bound: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawing that leaves this process has none of it."""
    told: list[object] = []
    frame = bound.runner.frame(record_of(bound)[1])
    monkeypatch.setattr(bound.runner, "frame", lambda _: replace(frame, text=f"key {SECRET} end"))

    def drawn(drawing: object) -> bytes:
        told.append(drawing)
        return PNG

    monkeypatch.setattr(pictures, "_drawn", drawn)

    picture(bound, record_of(bound)[1])

    assert "Ab3" not in str(told)
    assert str(told).count("'masked'") == len(SECRET)
    assert "Ab3" not in redactor_of(bound.environ).redact(f"key {SECRET} end")


def test_a_dialog_has_a_picture_below_it(bound: System) -> None:
    """Posted after its words, as a file that is named by session and time; once it is over there is none."""
    record = recorded(bound, "scribe")
    request = show(bound, record, Dialog(("Shall it?", "  1. Yes", "  2. No"), 0))
    assert request is not None
    post_picture(bound, record, request).join(30)
    row = bound.outbox.get(f"p-picture-{request.id}-file")
    bound.requests.move(request, state=RequestState.GONE)
    later = replace(request, id="q-later")
    post_picture(bound, record, later).join(30)

    assert row is not None
    assert row.post.kind is OutboundKind.ATTACHMENT
    path = Path(row.post.path)
    assert path.read_bytes().startswith(PNG)
    assert (path.name.startswith("scribe-20"), path.suffix, path.stat().st_mode & 0o777) == (True, ".png", 0o600)
    assert bound.outbox.get("p-picture-q-later-file") is None


def test_the_font_is_one_that_the_machine_has() -> None:
    """`the-loop doctor` names it."""
    assert font() == "" or Path(font()).is_file()


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit(3)", "Pillow is not installed"),
        ("import sys; sys.exit('no font')", "no font"),
        ("import time; time.sleep(30)", "longer than"),
        ("pass", "ended with 0"),
    ],
)
def test_where_nothing_is_drawn_the_reason_is_said(
    bound: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    """The text is shown all the same; nobody waits longer than the deadline."""
    fake = tmp_path / "drawing.py"
    fake.write_text(program)
    monkeypatch.setattr(drawing, "__file__", str(fake))
    monkeypatch.setattr(pictures, "_DRAWN_SECONDS", 1.0)

    with pytest.raises(NoPicture, match=why):
        picture(bound, record_of(bound)[1])


def test_the_program_that_draws_gets_no_secrets(bound: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is a path and a home."""
    given: list[dict[str, str]] = []
    run = subprocess.run

    def kept(*words: object, **options: object) -> object:
        given.append(dict(options["env"]))  # type: ignore[call-overload]
        return run(*words, **options)  # type: ignore[call-overload]

    monkeypatch.setenv("THE_LOOP_SLACK_BOT_TOKEN", "xoxb-1")
    monkeypatch.setattr(subprocess, "run", kept)
    picture(bound, record_of(bound)[1])

    assert [sorted(environ) for environ in given] == [["HOME", "PATH"]]
