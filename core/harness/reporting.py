"""The reporter: the script that a harness's hooks run, and that serves every harness whose hooks are commands.

It writes what a hook is given into the instance's spool, keeps the markers of open dialogs, blocks turns that nobody
typed while the session is held, and asks the service for a person's answer at a PermissionRequest.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.harness.base import CLIENT, REPORTER, text_of, write_private
from core.model.harness import SessionContext

#: Longer than any wait that `limits.approvalWaitSeconds` allows: the service ends the wait, and says so in the thread.
ASKING_SECONDS = 86_400 + 120
_NONCE_BYTES = 18
_SUMMARY_LIMIT = 500  #: characters of what is asked


_SCRIPT = Path(__file__).with_name("reporter.sh")
_FRAME = Path(__file__).with_name("frame.sh")  #: stands in each of them


def reporter_script(context: SessionContext, script: Path = _SCRIPT) -> str:
    """Return the reporter of this instance; `script`: that of a harness with hooks of its own kind."""
    text = script.read_text(encoding="utf-8").replace("\n@frame@\n", f"\n{_FRAME.read_text(encoding='utf-8')}")
    baked = {
        "folder": context.folder,
        "spool": context.spool,
        "poke": context.notify,
        "instance": context.instance,
        "service": context.service_socket,
        "python": sys.executable,
    }
    for key, value in baked.items():
        text = text.replace(f"\n{key}=@{key}@\n", f"\n{key}={shlex.quote(str(value))}\n")
    return text


def install_reporter(context: SessionContext) -> Path:
    """Write the reporter (0700), the client that it becomes, and a new nonce; return the path. Raises OSError.

    By the nonce the service knows a request as the instance's own. It stands in no argument, no name and no variable.
    """
    import secrets

    from core.clients import askclient

    write_private(context.folder / askclient.NONCE, f"{secrets.token_urlsafe(_NONCE_BYTES)}\n")
    write_private(context.folder / CLIENT, Path(askclient.__file__).read_text(encoding="utf-8"))
    path = context.folder / REPORTER
    write_private(path, reporter_script(context), mode=0o700)
    return path


def detail_of(given: Mapping[str, Any]) -> str:
    """Return what says most about a tool's call."""
    keys = ("command", "file_path", "url", "pattern", "query", "description")
    return next((text for key in keys if (text := text_of(given, key))), "")


def short(text: str, limit: int = _SUMMARY_LIMIT) -> str:
    """Return the text, cut to so many characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
