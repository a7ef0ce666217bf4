"""Name -> adapter, spelled out."""

from collections.abc import Mapping
from typing import Protocol

from core.clock import Clock
from core.errors import UnsupportedHarness
from core.harness.bundled import BundledHarness
from core.harness.claude.adapter import ClaudeHarness
from core.harness.cursor import CursorHarness
from core.harness.generic import GenericHarness
from core.ports import Harness


class Declaration(Protocol):
    """A harness that the configuration describes."""

    @property
    def start(self) -> tuple[str, ...]: ...
    @property
    def resume(self) -> tuple[str, ...] | None: ...
    @property
    def ready(self) -> str | None: ...
    @property
    def paste(self) -> str: ...
    @property
    def settle_ms(self) -> int: ...
    @property
    def clear(self) -> bytes | None: ...


class Catalogue:
    """Implements the Harnesses port."""

    def __init__(self, adapters: Mapping[str, Harness]) -> None:
        self._adapters = dict(adapters)

    def get(self, name: str) -> Harness:
        """Return the adapter. Raises UnsupportedHarness naming the ones there are."""
        adapter = self._adapters.get(name)
        if adapter is None:
            raise UnsupportedHarness(
                f"there is no harness {name!r}; there are {', '.join(sorted(self._adapters))}",
                f"choose one of them, or describe it under harnesses.{name}",
            )
        return adapter


def catalogue(
    clock: Clock,
    environ: Mapping[str, str],
    declared: Mapping[str, Declaration],
    *,
    trust_enabled: bool = True,
    accept_bypass: str = "auto",
    permission_mode: str | None = None,
) -> Catalogue:
    """Return every harness there is. `environ` is what the pane will inherit; no declared key hides a built-in one.

    Raises InvalidValue for a declaration that cannot be used.
    """
    adapters: dict[str, Harness] = {
        key: GenericHarness(
            key,
            block.start,
            resume=block.resume,
            ready=block.ready,
            paste=block.paste,
            settle_ms=block.settle_ms,
            clear=block.clear,
            path=environ.get("PATH"),
        )
        for key, block in declared.items()
    }
    adapters["claude"] = ClaudeHarness(
        clock, environ, trust_enabled=trust_enabled, accept_bypass=accept_bypass, permission_mode=permission_mode
    )
    adapters["bundled"] = BundledHarness()
    adapters["cursor"] = CursorHarness()
    return Catalogue(adapters)
