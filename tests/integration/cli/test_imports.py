"""`standing list` and `say` import what they use and nothing else: most of such a command's time are imports."""

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.base.paths import StatePaths
from core.model.session import Definition, SessionRecord
from core.store.database import Database
from core.store.records import Records
from core.store.sessions import Activities

#: What it may not import, and why it is tempting.
FORBIDDEN = {
    "aiohttp": "Slack's",
    "asyncio": "the bot's",
    "bot": "the front",
    "click": "core.cli.quick answers instead",
    "core.commandtable": "what the whole command line is built from",
    "core.model.reasons": "import it where there is a reason to tell",
    "core.harness": "list asks tmux, not the agents",
    "core.model.asking": "only what asks or posts has buttons",
    "core.model.dialog": "no screen is read",
    "core.model.framing": "no text is framed",
    "core.model.harness": "list asks tmux, not the agents",
    "core.model.loop": "core.store.database counts the open ones",
    "core.model.posts": "nobody is told anything in a thread",
    "core.session.launching": "only a start writes for a pane",
    "core.store.outbox": "nobody is told anything in a thread",
    "core.service.service": "the long-running process",
    "core.cli.app": "the whole command line",
    "core.tmux.control": "the service's way to tmux",
    "dataclasses": "core.base.values makes the same classes without inspect",
    "filelock": "reading takes no lock",
    "hashlib": "loads OpenSSL",
    "importlib.metadata": "channels are found by other commands",
    "inspect": "dataclasses imports it",
    "libtmux": "core.tmux asks by itself, and core.tmux.window by a process",
    "logging": "import it where something goes wrong",
    "psutil": "core.tmux.processes is for ending processes",
    "pydantic": "core.config.cache keeps what was validated",
    "random": "secrets imports it",
    "secrets": "only new names need it",
    "shutil": "nothing is searched or removed",
    "slack_bolt": "Slack's",
    "slack_sdk": "Slack's",
    "socket": "nobody is asked",
    "tempfile": "nothing is written",
    "uuid": "only new conversations need it",
    "yaml": "core.config.cache keeps what was validated",
}
#: `say` tells why a message waits, asks the session's harness, looks for dialogs and ticks, frames the text for the
#: pane, and writes a hash of it to the event log.
USED_TO_SAY = {
    "core.harness",
    "core.model.asking",
    "core.model.dialog",
    "core.model.framing",
    "core.model.harness",
    "core.model.loop",
    "core.model.posts",
    "core.model.reasons",
    "hashlib",
}
FORBIDDEN_TO_SAY = {name: why for name, why in FORBIDDEN.items() if name not in USED_TO_SAY} | {
    "embedded.agent": "the bundled agent's",
    "core.clients": "programs that others run",
    "embedded.adapter": "another harness's: core.harness.catalogue makes them one by one",
    "core.harness.claude": "another harness's",
    "core.loops.outcomes": "core.delivery.hook_ingest imports it where a turn begins",
    "core.cli.session": "every other command's",
    "core.delivery.hearing": "core.delivery.deliverer imports it where a session starts",
    "core.delivery.permission_requests": "core.delivery.hook_ingest imports it where a dialog is over",
    "core.process.control": "the service's",
    "core.lifecycle.start": "a message starts no session",
    "multiprocessing": "another's",
}
_LINE = re.compile(r"import time:\s+\d+ \|\s+\d+ \|( +)(\S+)")


def _imports(stderr: str) -> Iterator[tuple[str, ...]]:
    """Yield each imported module with those that import it, the first one last: `(logging, core.x, core.y)`.

    `-X importtime` prints a module when it is done, so what it imported stands above it, indented deeper.
    """
    open_: list[tuple[int, str]] = []
    for found in reversed([match for match in map(_LINE.match, stderr.splitlines()) if match]):
        depth = len(found[1])
        while open_ and open_[-1][0] >= depth:
            open_.pop()
        open_.append((depth, found[2]))
        yield tuple(name for _, name in reversed(open_))


def _culprits(stderr: str, forbidden: dict[str, str]) -> list[str]:
    told = []
    for module, *importers in _imports(stderr):
        top = next((name for name in forbidden if module == name or module.startswith(f"{name}.")), None)
        if top is not None:
            told.append(f"{module} ({forbidden[top]}), imported by {' < '.join(importers) or 'a function'}")
    return told


def _list(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return _standing(environ, "list")


def _standing(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    program = "from core.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program, "standing", *words],
        env=environ, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user of their own, outside of any pane, with no tmux server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THE_LOOP_")}
    folders = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
    return {**kept, "TMUX_TMPDIR": str(tmp_path), **{name: str(tmp_path / sub) for name, sub in folders.items()}}


def _fill(tmp_path: Path) -> None:
    """Declare a session, record it and another one, and store what one of them does."""
    config = tmp_path / "config" / "the-loop"
    config.mkdir(parents=True)
    (config / "cli-config.yaml").write_text("standingSessions: {sessions: [{name: scribe}]}\n")
    paths = StatePaths(tmp_path / "state" / "the-loop")
    now = datetime(2026, 11, 29, tzinfo=UTC)
    for name in ("scribe", "builder"):
        Records(paths).write(SessionRecord(name, f"s-{name}", Definition(name), now, instance_id=f"i-{name}"))
    database = Database(paths, SystemClock())
    Activities(database).touch_message("s-scribe", now)
    database.close()


def test_list_imports_nothing_that_it_does_not_use(tmp_path: Path, environ: dict[str, str]) -> None:
    """With sessions, records and a database, none of the named modules is imported once the configuration is known."""
    _fill(tmp_path)
    _list(environ)

    done = _list(environ)

    assert "scribe" in done.stdout
    assert "builder" in done.stdout
    assert "core.lifecycle.look" in {module for module, *_ in _imports(done.stderr)}
    assert _culprits(done.stderr, FORBIDDEN) == []


def test_list_of_nothing_opens_no_database(environ: dict[str, str]) -> None:
    """On a fresh machine SQLite is not imported either."""
    done = _list(environ)

    assert "no standing sessions" in done.stdout
    assert _culprits(done.stderr, {**FORBIDDEN, "sqlite3": "there is no database yet"}) == []


@pytest.fixture
def started(tmp_path: Path, short_path: Path, environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """Give the environment of a user whose session `scribe` runs: a program that reads its terminal."""
    environ["TMUX_TMPDIR"] = str(short_path)
    socket = f"loop-test-{secrets.token_hex(4)}"
    sink = {"start": ["sh", "-c", "stty raw -echo; echo READY; exec cat >/dev/null"], "ready": "READY", "settleMs": 0}
    document = {
        "harnesses": {"sink": sink},
        "routing": {"tmux": {"socketName": socket}, "spawnWorkdir": str(tmp_path)},
        "standingSessions": {"sessions": [{"name": "scribe", "harness": "sink"}]},
    }
    (tmp_path / "config" / "the-loop").mkdir(parents=True)
    (tmp_path / "config" / "the-loop" / "cli-config.yaml").write_text(json.dumps(document))
    try:
        _standing(environ, "start", "scribe")
        yield environ
    finally:
        subprocess.run(["tmux", "-L", socket, "kill-server"], env=environ, capture_output=True, timeout=60, check=False)


def test_say_imports_nothing_that_it_does_not_use(started: dict[str, str]) -> None:
    """A message to a program that reads its terminal, without a service: the whole way into the pane."""
    done = _standing(started, "say", "scribe", "--text", "hello")

    assert "scribe: submitted" in done.stdout
    assert "core.delivery.writing" in {module for module, *_ in _imports(done.stderr)}
    assert _culprits(done.stderr, FORBIDDEN_TO_SAY) == []


def test_a_screen_asks_tmux_by_itself_and_libtmux_only_about_its_window(started: dict[str, str]) -> None:
    """No other process of a plain look is started, and libtmux is imported by none but that of its own."""
    plain = _standing(started, "screen", "scribe", "--json")
    window = _standing(started, "screen", "scribe", "--window", "--json")

    assert json.loads(plain.stdout) == {"name": "scribe", "screen": "READY", "ended": False}
    told = json.loads(window.stdout)
    assert (told.pop("window")["columns"], told) == (200, json.loads(plain.stdout))
    assert "core.tmux.window" not in {module for module, *_ in _imports(plain.stderr)}
    assert _culprits(plain.stderr + window.stderr, {"libtmux": "it belongs to a process of its own"}) == []


def test_culprit_is_named_with_those_that_import_it() -> None:
    """The message leads from the forbidden module up to the one to mend."""
    stderr = (
        "import time:       100 |        100 |     logging\n"
        "import time:       100 |        200 |   core.lifecycle.common\n"
        "import time:        50 |         50 |   core.base.names\n"
        "import time:       100 |        350 | core.lifecycle.look\n"
    )

    told = _culprits(stderr, FORBIDDEN)

    assert told == [f"logging ({FORBIDDEN['logging']}), imported by core.lifecycle.common < core.lifecycle.look"]
