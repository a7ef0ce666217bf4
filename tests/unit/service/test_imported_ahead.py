"""The service imports at its start what its workers use."""

import subprocess
import sys

LATE = """
import ast, sys
import bot.channel, core.service.assembly
from core.service.service import import_ahead

import_ahead()
bot.markdown.load()  # as the channel does before it reads anything
for name, module in sorted(sys.modules.items()):
    if not name.startswith(("core.", "bot.")) or not getattr(module, "__file__", None):
        continue
    functions = [node for node in ast.walk(ast.parse(open(module.__file__).read()))
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in (inner for function in functions for inner in ast.walk(function)):
        wanted = [node.module] if isinstance(node, ast.ImportFrom) else []
        wanted += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for late in wanted:
            if late not in sys.modules:
                print(name, late)
"""
#: What takes much memory is loaded by the first request (docs/adr/0007), and is loaded again where that fails.
BY_REQUEST = {
    ("core.http.host", "uvicorn"),
    ("core.http.host", "core.http.app"),
    ("core.http.host", "core.http.guard"),
    ("core.service.assembly", "core.service.hosting"),  #: GET /api/v1/status
    ("core.service.assembly", "core.http.webpage"),
}


BY_ITS_PROGRAM = {("core.process.drawing", "PIL")}  #: which runs alone (docs/adr/0063): the service never draws
WITHOUT_PROC = {("core.harness.base", "psutil"), ("core.tmux.handles", "psutil")}  #: not on Linux
#: with the first session of such a program, as an installed harness is: whoever has none pays no memory for it
BY_SESSION = {("core.harness.catalogue", f"core.harness.{name}.adapter") for name in ("codex", "gemini", "opencode")}
#: a file that changed and is wrong, or whose checked form cannot be kept; else a process of its own imports it
BY_WRONG_FILE = {
    ("core.service.wiring", "core.config.channels"),
    ("core.config.loading", "core.config.channels"),
    ("core.config.loading", "core.config.document"),
    ("core.config.loading", "core.config.validation"),
}
BY_PERSON = {("core.tmux.runner", "core.tmux.window")}  #: only `screen --history` and `--window` ask for it
BY_START = {  #: before any worker
    ("core.store.migrations", "core.store.oldwords"),  #: a database of an earlier version
    ("core.service.wiring", "core.config.secrets"),  #: a chat's own file of secrets
    ("core.service.assembly", "core.service.fleet"),  #: only where fleet.enabled is true
}


def test_nothing_but_the_web_framework_is_imported_later() -> None:
    """A worker that must open a file to go on stands still when no descriptor is left, or the file is another."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=True)

    found = {tuple(line.split()) for line in done.stdout.splitlines()}

    assert found <= BY_REQUEST | BY_PERSON | BY_WRONG_FILE | BY_START | BY_SESSION | BY_ITS_PROGRAM | (
        WITHOUT_PROC if sys.platform == "linux" else set()
    )


def test_without_a_fleet_nothing_of_it_is_imported() -> None:
    """One machine pays nothing for what many need."""
    found = "print(*(name for name in sys.modules if 'fleet' in name or 'psycopg' in name))"
    code = f"{LATE.partition('for name')[0]}\n{found}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == []
