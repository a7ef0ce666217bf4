"""Find a harness's adapter by name. Each is imported when it is first asked for, because a command needs one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from core.base.clock import Clock
from core.base.errors import UnsupportedHarness

if TYPE_CHECKING:
    from core.model.harness import Harness


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


class Harnesses:
    """The harnesses that there are, by name; each adapter is made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Harness]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Harness] = {}

    def get(self, name: str) -> Harness:
        """Return the adapter. Raises UnsupportedHarness naming the ones there are."""
        made = self._made.get(name)
        if made is not None:
            return made
        maker = self._makers.get(name)
        if maker is None:
            raise UnsupportedHarness(
                f"there is no harness {name!r}; there are {', '.join(sorted(self._makers))}",
                f"choose one of them, or describe it under harnesses.{name}",
            )
        return self._made.setdefault(name, maker())  # one for all threads


def catalogue(
    clock: Clock,
    environ: Mapping[str, str],
    declared: Mapping[str, Declaration],
    *,
    trust_enabled: bool = True,
    accept_bypass: str = "auto",
    permission_mode: str | None = None,
) -> Harnesses:
    """Return every harness there is. `environ` is what the pane will inherit; no declared key hides a built-in one.

    Raises InvalidValue for a declaration that cannot be used.
    """

    def claude() -> Harness:
        from core.harness.claude.adapter import ClaudeHarness

        return ClaudeHarness(
            clock, environ, trust_enabled=trust_enabled, accept_bypass=accept_bypass, permission_mode=permission_mode
        )

    described = {key: _described(key, block, environ) for key, block in declared.items()}
    makers = {key: partial(described.__getitem__, key) for key in described}
    return Harnesses({**makers, "claude": claude, "bundled": _bundled, "cursor": _cursor})


def _described(key: str, block: Declaration, environ: Mapping[str, str]) -> Harness:
    from core.harness.generic import GenericHarness

    return GenericHarness(
        key,
        block.start,
        resume=block.resume,
        ready=block.ready,
        paste=block.paste,
        settle_ms=block.settle_ms,
        clear=block.clear,
        path=environ.get("PATH"),
    )


def _bundled() -> Harness:
    from core.harness.bundled import BundledHarness

    return BundledHarness()


def _cursor() -> Harness:
    from core.harness.generic import CursorHarness

    return CursorHarness()
