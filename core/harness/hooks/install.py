"""Writes the reporter and the settings that name it into a session's folder, paths baked in."""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.domain.harness import SessionContext
from core.errors import TrustFailed
from core.harness.base import CLIENT, REPORTER, SETTINGS, make_folders, write_private
from core.harness.hooks.settings import hook_settings, merged

_NONCE_BYTES = 18


def reporter_script(context: SessionContext) -> str:
    """Return the reporter of this instance."""
    text = Path(__file__).with_name("reporter.sh").read_text(encoding="utf-8")
    baked = {
        "folder": context.folder,
        "spool": context.spool,
        "poke": context.poke,
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


def install_hooks(context: SessionContext, theirs: Mapping[str, Any]) -> Path:
    """Make the folders, write the reporter and the settings (`theirs` and our hooks), and return the settings' path.

    Raises TrustFailed.
    """
    make_folders(context)
    path = context.folder / SETTINGS
    try:
        settings = merged(theirs, hook_settings(install_reporter(context)))
        write_private(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: the hook settings cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error
    return path
