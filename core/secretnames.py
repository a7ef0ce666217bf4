"""Which environment variables hold secrets. Imported by every command, so nothing heavy is imported here."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.config.settings import Settings

_FOR_AGENTS = frozenset({"THE_LOOP_INSTANCE", "THE_LOOP_CONFIG", "THE_LOOP_MCP_TOKEN_FILE"})


def secret_variables(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that no agent may see.

    Those that the channels' `…Env` keys and service.tokenEnv name, and every other variable of ours: the defaults of
    the channels' keys are their own business, and all of them begin like this.
    """
    named = {name for block in settings.channels.values() for name in _env_names(block.raw)}
    named.add(settings.service.token_env)
    ours = {name for name in environ if name.startswith("THE_LOOP_") and name not in _FOR_AGENTS}
    return tuple(sorted(name for name in named | ours if name.isascii() and name.isidentifier()))


def _env_names(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if key.endswith("Env") and isinstance(item, str):
            yield item
        else:
            yield from _env_names(item)
