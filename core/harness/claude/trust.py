"""Answers Claude Code's first dialogs before it starts: any of them would swallow the first message.

Its configuration is one JSON file that every running Claude Code rewrites. It guards its writes by a folder
`<file>.lock` (stale after ten seconds without a touch), and so do we.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.clock import Clock, Deadline
from core.errors import TrustFailed
from core.harness.base import write_private
from core.harness.claude.files import LONGEST
from core.plainfiles import read_plain

_LOCK_WAIT = 5.0  #: seconds until we give up on somebody's lock
_LOCK_STALE = 10.0  #: seconds after which nobody holds it any more
_LOCK_POLL = 0.02
_ATTEMPTS = 5
_KEY_TAIL = 20  #: a key is remembered by its last characters

_Content = dict[str, Any]


class ClaudeTrust:
    """Writes what is missing into Claude Code's configuration, and nothing else."""

    def __init__(self, configuration: Path, clock: Clock) -> None:
        self._path = configuration
        self._clock = clock

    def accept(self, cwd: Path, api_key: str | None) -> bool:
        """Mark onboarding as done, the folder as trusted and the key as approved; tell whether anything was missing.

        Raises TrustFailed; a file that does not parse is left as it is.
        """
        folder = os.path.realpath(cwd)
        try:
            if _completed(self._read(), folder, api_key) is None:
                return False
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock():
                return self._write_missing(folder, api_key)
        except OSError as error:
            raise TrustFailed(
                f"claude: {self._path} cannot be prepared: {error.strerror}",
                "make it readable and writable, or set routing.harnessTrust.enabled to false",
            ) from error

    def _write_missing(self, folder: str, api_key: str | None) -> bool:
        target = Path(os.path.realpath(self._path))  # a link stays a link
        for _ in range(_ATTEMPTS):
            before = _identity(target)
            completed = _completed(self._read(), folder, api_key)
            if completed is None:
                return False
            if _identity(target) == before:
                mode = 0o600 if before is None else stat.S_IMODE(before[0])
                write_private(target, json.dumps(completed, ensure_ascii=False, indent=2), mode)
                return True
        raise TrustFailed(
            f"claude: {self._path} is being rewritten all the time, so trust cannot be written into it",
            "try again",
        )

    def _read(self) -> _Content:
        try:
            content = json.loads(read_plain(self._path, LONGEST))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise self._malformed(str(error)) from error
        if not isinstance(content, dict):
            raise self._malformed("it holds no JSON object")
        for key in ("projects", "customApiKeyResponses"):
            if not isinstance(content.get(key, {}), dict):
                raise self._malformed(f"{key!r} is no object")
        return content

    def _malformed(self, reason: str) -> TrustFailed:
        return TrustFailed(
            f"claude: {self._path} cannot be understood and was left as it is: {reason}",
            "repair the file, or move it away, then try again",
        )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = Path(f"{self._path}.lock")
        deadline = Deadline(self._clock, _LOCK_WAIT)
        while True:
            try:
                lock.mkdir()
                break
            except FileExistsError:
                if self._is_stale(lock):
                    _remove(lock)
                elif deadline.passed():
                    raise TrustFailed(
                        f"claude: {self._path} is locked by another Claude Code ({lock})",
                        "try again; if no Claude Code runs, remove that folder",
                    ) from None
                else:
                    self._clock.pause(_LOCK_POLL)
        try:
            yield
        finally:
            _remove(lock)

    def _is_stale(self, lock: Path) -> bool:
        try:
            touched = lock.stat().st_mtime
        except FileNotFoundError:
            return False
        return self._clock.now().timestamp() - touched > _LOCK_STALE


def _completed(content: _Content, folder: str, api_key: str | None) -> _Content | None:
    """Return the content with what is missing, or None where nothing is."""
    from copy import deepcopy

    result = deepcopy(content)
    result["hasCompletedOnboarding"] = True
    project = result.setdefault("projects", {}).setdefault(folder, {})
    if not isinstance(project, dict):
        raise TrustFailed(f"claude: projects[{folder!r}] of its configuration is no object", "repair the file")
    project["hasTrustDialogAccepted"] = True
    if api_key:
        _approve(result.setdefault("customApiKeyResponses", {}), api_key[-_KEY_TAIL:])
    return None if result == content else result


def _approve(responses: _Content, tail: str) -> None:
    """Approve the key, unless its operator has rejected it."""
    for key in ("approved", "rejected"):
        if not isinstance(responses.setdefault(key, []), list):
            raise TrustFailed(f"claude: customApiKeyResponses.{key} is no list", "repair the file")
    if tail not in responses["approved"] and tail not in responses["rejected"]:
        responses["approved"].append(tail)


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _remove(lock: Path) -> None:
    try:
        lock.rmdir()
    except FileNotFoundError:
        return
