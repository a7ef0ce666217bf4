"""What every test starts from: no proxy, no operator's tmux, no agent's identity, and a home of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

_HOME = pytest.StashKey[Path]()
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy", "ftp_proxy")
_TERMINAL = ("TMUX", "TMUX_PANE", "TMUX_TMPDIR")


def pytest_configure(config: pytest.Config) -> None:
    """Clean this process's environment, which every process that a test starts inherits.

    A proxy would take loopback traffic away, an outer TMUX would answer for ours, and a THE_LOOP_* variable
    would name the operator's own configuration or make the tests an agent. PATH leads to the installation under test,
    as that of whoever uses it: then remedies name the program alone.
    """
    for name in list(os.environ):
        if name.lower() in _PROXIES or name in _TERMINAL or name.startswith(("THE_LOOP_", "XDG_")):
            del os.environ[name]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    home = Path(tempfile.mkdtemp(prefix="the-loop-home-"))
    config.stash[_HOME] = home
    os.environ["HOME"] = str(home)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the home that the tests wrote to."""
    if home := config.stash.get(_HOME, None):
        shutil.rmtree(home, ignore_errors=True)
