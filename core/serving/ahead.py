"""What the service imports at its start although nothing uses it yet: what commands import at its first use.

A service lives for long. Later there may be no descriptor left to read a file with, or another version in its place, or
no folder any more.
"""

import sys
from importlib import import_module

_MODULES = (
    "core.config.salvage",
    "core.config.validation",
    "core.harness.bundled",
    "core.harness.catalogue",
    "core.harness.claude.adapter",
    "core.harness.cursor",
    "core.harness.generic",
    "core.observing.failures",
    "core.observing.prompting",
    "core.process.rotating",
    "core.store.eventlog",
    "core.store.locks",
    "core.store.loops",
    "core.store.marks",
    "core.store.migrations",
    "core.store.outbox",
    "core.store.progress",
    "core.store.requests",
    "core.store.retention",
    "core.store.beside",
    "core.store.sqlerrors",
    "core.store.watchbook",
    "core.tmux.birth",
    "core.tmux.control",
    "core.tmux.processes",
    "core.tmux.proctable",
    "core.tools.loops",
    "core.tools.toolbox",
    "core.tools.toolset",
    "core.tools.toolsocket",
    "cronsim",
    "ctypes",
    "resource",
    "shutil",
    "termios",
)
_WITHOUT_PROC = () if sys.platform == "linux" else ("psutil",)


def import_ahead() -> None:
    """Import it."""
    for name in (*_MODULES, *_WITHOUT_PROC):
        import_module(name)
