"""A picture of a session's terminal, with its colours and without secrets, for where words do not show it.

What a chat shows of a terminal as text hides secrets; whatever that hides is not readable in the picture either. It is
drawn by a process of its own, in a bounded time, and nothing waits for it.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import CoreError, Refused
from core.base.redaction import Redactor, redactor_of
from core.config.settings import secret_variables
from core.model.asking import RequestState
from core.model.cells import drawing_of, masked, rows_of
from core.model.posts import OWN_CHAT, NewPost, OutboundKind
from core.process import drawing
from core.session.attachments import attachment_id, keep_outgoing

if TYPE_CHECKING:
    from core.model.asking import Request
    from core.model.cells import Rows
    from core.model.pane import Frame
    from core.model.session import SessionRecord
    from core.session.system import System

_LOG = logging.getLogger(__name__)
_CONTEXT = 200  #: lines of the terminal in which secrets are looked for: more than any picture shows
_DRAWN_SECONDS = 15.0
_ALONE = threading.BoundedSemaphore(2)  #: pictures that are drawn at once
_PATH = "/usr/bin:/bin"


class NoPicture(Refused):
    """A screen could not be drawn."""

    code = "no_picture"

    def __init__(self, why: str) -> None:
        super().__init__(f"the terminal could not be drawn: {why}", "the text shows it, without its colours")


def picture(system: System, instance: str) -> bytes:
    """Return the screen of the instance's pane as PNG. Raises NoPicture, NotRunning, TmuxSilent."""
    frame, lines = system.runner.frame(instance), system.runner.screen(instance, _CONTEXT)
    redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
    if not _ALONE.acquire(timeout=_DRAWN_SECONDS):
        raise NoPicture("others are being drawn")
    try:
        return _drawn(drawing_of(frame, _without_secrets(frame, lines, redactor)))
    finally:
        _ALONE.release()


def _without_secrets(frame: Frame, lines: str, redactor: Redactor) -> Rows:
    """Return the frame's cells. `lines`: its text and what stands above it, where a secret may begin."""
    known = [lines[cut.start : cut.end] for cut in redactor.cuts(lines)]
    return masked(rows_of(frame), frame.columns, redactor.cuts, known)


def font() -> str:
    """Return the file of the font that terminals are drawn with, "" for Pillow's own. Raises NoPicture."""
    return _said_by_program("--font", given=b"").decode(errors="replace").strip()


def _drawn(told: object) -> bytes:
    return _said_by_program(given=json.dumps(told).encode())


def _said_by_program(*words: str, given: bytes) -> bytes:
    program = [sys.executable, "-I", str(Path(drawing.__file__)), *words]
    try:
        made = subprocess.run(
            program,
            input=given,
            capture_output=True,
            timeout=_DRAWN_SECONDS,
            env={"PATH": _PATH, "HOME": str(Path.home())},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoPicture(f"it took longer than {_DRAWN_SECONDS:.0f} s") from error
    except OSError as error:
        raise NoPicture(str(error)) from error
    if made.returncode == drawing.NO_PILLOW:
        raise NoPicture("Pillow is not installed")
    if made.returncode != 0 or not made.stdout:
        lines = made.stderr.decode(errors="replace").strip().splitlines()
        raise NoPicture(lines[-1] if lines else f"the program ended with {made.returncode}")
    return made.stdout


def post_picture(system: System, record: SessionRecord, request: Request) -> threading.Thread:
    """Attach a picture of the terminal below a request that is open, in a thread of its own, which is returned.

    Best effort: the request stands there in words already.
    """
    thread = threading.Thread(target=_posted, args=(system, record, request), name="picture", daemon=True)
    thread.start()
    return thread


def _posted(system: System, record: SessionRecord, request: Request) -> None:
    try:
        made = picture(system, request.instance)
        latest = system.requests.get(request.id)
        if latest is None or latest.state is not RequestState.OPEN:
            return
        post_id = f"p-picture-{request.id}"
        name = f"{record.name}-{system.clock.now():%Y-%m-%d-%H%M}.png"
        path = keep_outgoing(system, record.uid, post_id, name, made)
        system.outbox.add([_post(record, attachment_id(post_id), path)])
    except CoreError as error:
        _LOG.warning("a dialog has no picture", extra={"session": record.uid, "reason": str(error)})
        return
    system.notify()


def _post(record: SessionRecord, post_id: str, path: Path) -> NewPost:
    return NewPost(
        id=post_id,
        key=post_id,
        kind=OutboundKind.ATTACHMENT,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=f"{record.name}: its terminal",
        path=str(path),
    )
