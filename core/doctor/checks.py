"""Which checks there are, in the order in which they are shown."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from core.base.paths import locate
from core.doctor import agents, chats, machine, state, terminal
from core.doctor.running import Check
from core.service.wiring import tmux_server
from core.session.system import System

_OF_UNITS = ("environment", "agents.environment")  #: beside the configuration: what the systemd units read
_SECONDS = 15.0  #: for what asks this machine alone


def checks_of(system: System, config: Path | None, environ: Mapping[str, str], *, live: bool) -> tuple[Check, ...]:
    """Return the checks. `system`: of a file that is broken, what could be read of it; `config`: what --config names.

    `live`: a message is posted in each chat's channel, and removed.
    """
    return tuple(_all(system, config, environ, live=live))


def _all(system: System, config: Path | None, environ: Mapping[str, str], *, live: bool) -> Iterator[Check]:
    settings, paths = system.settings, system.paths
    server = tmux_server(settings, environ)
    enabled = [name for name, block in settings.channels.items() if block.enabled]
    file = locate(config, environ).path
    secrets = [
        paths.api_token,
        paths.page_logins,
        *(paths.chat_secrets(name) for name in settings.channels),
        *(file.parent / name for name in _OF_UNITS),
    ]
    yield Check("python", _SECONDS, machine.python)
    yield Check("locale", _SECONDS, partial(machine.locale, environ))
    yield Check("descriptors", _SECONDS, machine.descriptors)
    yield Check("disk", _SECONDS, partial(machine.disk, paths.local))
    yield Check("configuration", _SECONDS, partial(state.configuration, config, environ))
    yield Check("permissions", _SECONDS, partial(machine.permissions, file, paths, secrets))
    yield Check("tmux", _SECONDS, partial(terminal.version, server))
    yield Check("pasting", terminal.PASTE_SECONDS, partial(terminal.paste, server, system.clock))
    yield Check("tmux server", _SECONDS, partial(terminal.server, system))
    for name, definition in agents.harnesses_of(settings, system.records).items():
        look = partial(agents.harness, name, definition, settings, system.harnesses, environ)
        yield Check(f"harness {name}", agents.SECONDS, look)
    yield Check("sessions", _SECONDS, partial(state.sessions, system))
    yield Check("database", state.DATABASE_SECONDS, partial(state.database, system))
    yield Check("service", _SECONDS, partial(state.service, settings, system))
    if settings.fleet.enabled:
        from core.doctor import fleet  # which one machine alone does not import

        yield Check("fleet: joined", _SECONDS, partial(fleet.joined, paths))
        yield Check("fleet: database", fleet.SECONDS, partial(fleet.asked, paths))
    if enabled:
        yield Check("pictures", _SECONDS, machine.pictures)
    for name in enabled:
        yield Check(f"{name}: check", chats.SECONDS, partial(chats.chat, system, name))
        if live:
            yield Check(f"{name}: round trip", chats.LIVE_SECONDS, partial(chats.round_trip, system, name))
