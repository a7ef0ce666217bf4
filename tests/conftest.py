"""What every test starts from: no proxy, no operator's tmux, no agent's identity, and folders of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

_FOLDER = pytest.StashKey[Path]()
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy", "ftp_proxy")
_TERMINAL = ("TMUX", "TMUX_PANE", "TMUX_TMPDIR")


settings.register_profile("house", settings.default, deadline=None)  # a busy machine is slow: that is no defect
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Clean this process's environment, which every process that a test starts inherits.

    A proxy would take loopback traffic away, an outer TMUX would answer for ours, and a THE_LOOP_* variable
    would name the operator's own configuration or make the tests an agent. PATH leads to the installation under test,
    as that of whoever uses it: then remedies name the program alone. Whoever runs the tests in the background of a
    shell has them ignore Ctrl-C, and a program that is started so ignores it too.
    """
    for name in list(os.environ):
        if name.lower() in _PROXIES or name in _TERMINAL or name.startswith(("THE_LOOP_", "XDG_")):
            del os.environ[name]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _give_folders(config)


def _give_folders(config: pytest.Config) -> None:
    """Give a home and a folder for temporary files, which go when the tests end; `tmp_path` stays where it was.

    The names are short, since the path of a Unix socket is limited, and a worker's folder is within its controller's.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="tl-"))
    config.stash[_FOLDER] = folder
    home = folder / "home"
    home.mkdir()
    os.environ.update(HOME=str(home), TMPDIR=str(folder))
    tempfile.tempdir = None  # asked again, it follows TMPDIR


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Give a folder for Unix sockets, whose paths are limited: `tmp_path` has the user's and the test's name in it."""
    folder = Path(tempfile.mkdtemp(prefix="s-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the tests wrote to."""
    if folder := config.stash.get(_FOLDER, None):
        shutil.rmtree(folder, ignore_errors=True)
