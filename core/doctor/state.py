"""What is ours: the configuration, the database, and the service with its connections."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from core.base.errors import CoreError, StoreBroken
from core.config import commands
from core.config.channels import installed_models
from core.config.settings import Settings
from core.http.facts import HTTP_ROW
from core.lifecycle.everything import database_rows
from core.model.health import Finding, State
from core.service.hosting import service_rows
from core.session.sessions import every_session, resolve
from core.session.startup import troubles_ahead
from core.session.system import System

_INTEGRITY_SECONDS = 20.0
DATABASE_SECONDS = 30.0


def configuration(explicit: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look for everything that is wrong with the file."""
    path = commands.where(explicit, environ).path
    try:
        problems = commands.check(explicit, environ, models=installed_models())
    except CoreError as error:
        yield Finding("configuration", State.FAILED, error.message, error.remedy)
        return
    for problem in problems:
        yield Finding("configuration", State.FAILED, problem.what, problem.remedy)
    if not problems:
        told = f"{path}: nothing is wrong" if path.is_file() else f"there is no {path}: all is default"
        yield Finding("configuration", State.OK, told)


def sessions(system: System) -> Iterator[Finding]:
    """Look for sessions that get in one another's way, and for what would stop one at its next start."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for known in every_session(system.settings, system.records):
        if known.unreadable is not None:
            yield Finding(f"session {known.name}", State.FAILED, known.unreadable.message, known.unreadable.remedy)
            continue
        cwd = resolve(known.definition, system.settings).cwd
        folders[cwd].append(known.name)
        if not cwd.is_dir():
            told = f"its folder {cwd} is not there, so it cannot be started"
            yield Finding(f"session {known.name}", State.FAILED, told, f"`mkdir -p {cwd}`, or change its cwd")
        elif cwd.resolve().is_relative_to(system.paths.local):
            told = f"it works in {cwd}, among the files by which the-loop works"
            yield Finding(f"session {known.name}", State.WARNING, told, "give it a folder of its own")
    shared = [(cwd, names) for cwd, names in folders.items() if len(names) > 1]
    for cwd, names in shared:
        told = f"{', '.join(names)} work in the same folder, {cwd}, and may change one another's files"
        yield Finding("folders", State.WARNING, told, "give each a folder or a git worktree of its own (`cwd`)")
    for told in troubles_ahead(system.settings, system.records, system.harnesses):
        yield Finding("next start", State.WARNING, told, "settle it before the next start")
    if folders and not shared:
        yield Finding("folders", State.OK, f"{len(folders)} sessions, each in a folder of its own")


def database(system: System) -> Iterator[Finding]:
    """Look through the whole database."""
    for row in database_rows(system):
        state = State.WARNING if row.running else State.FAILED
        yield Finding("database", state, row.detail, "docs/operations.md, *When the database is lost*")
        if not row.running:
            return
    try:
        if not system.database.is_there():
            yield Finding("database", State.OK, "there is none yet")
            return
        whole = system.database.check(_INTEGRITY_SECONDS, whole=True)
    except StoreBroken as error:
        yield Finding("database", State.FAILED, error.message, error.remedy)
        return
    if whole:
        size = system.database.path.stat().st_size / 2**20
        yield Finding("database", State.OK, f"intact, {size:.1f} MiB")
    else:
        told = f"nothing is wrong with what could be looked at in {_INTEGRITY_SECONDS:g} s; it is large"
        yield Finding("database", State.UNKNOWN, told, "run `PRAGMA integrity_check` while no service runs")


def service(settings: Settings, system: System) -> Iterator[Finding]:
    """Look at the service, its connections, and those of its workers that are in trouble."""
    own, *others = service_rows(settings, system.paths, system.environ)
    if not own.running:
        told = "it is not running: nothing reaches a chat, no loop runs, and nothing is restarted"
        yield Finding("service", State.FAILED, told, own.detail)
        return
    answers = bool(others) and all(row.running is not None for row in others)
    state = State.UNKNOWN if not answers else State.WARNING if own.detail else State.OK
    yield Finding("service", state, f"process {own.pid}{': ' if own.detail else ''}{own.detail}")
    for row in others:
        name = row.name if row.name not in settings.channels else f"{row.name}: connection"
        if row.running is None:
            yield Finding(name, State.UNKNOWN, row.detail or "it could not be asked", "see the service")
        elif row.running:
            yield Finding(name, State.OK, row.detail or "it works")
        else:
            state = State.WARNING if row.name == HTTP_ROW else State.FAILED
            yield Finding(name, state, row.detail, "docs/operations.md, *Is it up?*")
