"""Find a harness's adapter by name. Each is imported when it is first asked for, because a command needs one.

Those of this distribution are named here, so that a command which needs one of them looks for no package. Others are
found by the entry point group `the_loop.harnesses`: a function that is given the environment of the pane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from core.base.clock import Clock
from core.base.errors import UnsupportedHarness
from core.base.plugins import entry_points, load
from core.base.values import dataclass

if TYPE_CHECKING:
    from core.model.harness import Harness


_ARGUMENTS = {"claude": "core.harness.claude.arguments", "codex": "core.harness.codex.arguments"}  #: of ours
GROUP = "the_loop.harnesses"  #: the entry point group of harnesses


def refuse_arguments(harness: str, args: Sequence[str]) -> None:
    """Refuse arguments that a harness of ours gets from us alone; nothing is known of others. Raises InvalidValue."""
    if harness in _ARGUMENTS:
        import_module(_ARGUMENTS[harness]).refuse_owned(args)


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

    def __init__(self, makers: Mapping[str, Callable[[], Harness]], environ: Mapping[str, str]) -> None:
        """`makers` come before what is installed, which is given `environ`."""
        self._makers = dict(makers)
        self._environ = environ
        self._made: dict[str, Harness] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all there are, sorted."""
        return tuple(sorted({*self._makers, *entry_points(GROUP)}))

    def get(self, name: str) -> Harness:
        """Return the adapter. Raises UnsupportedHarness, which names the ones there are, or why it cannot be loaded."""
        made = self._made.get(name)
        if made is not None:
            return made
        maker = self._makers.get(name)
        harness = self._installed(name) if maker is None else maker()
        return self._made.setdefault(name, harness)  # one for all threads

    def _installed(self, name: str) -> Harness:
        installed = entry_points(GROUP)
        target = installed.get(name)
        if target is None:
            raise UnsupportedHarness(
                f"there is no harness {name!r}; there are {', '.join(sorted({*self._makers, *installed}))}",
                f"choose one of them, or describe it under harnesses.{name}",
            )
        try:
            make = load(target)
        except (ImportError, AttributeError) as error:
            raise UnsupportedHarness(
                f"the harness {name!r} ({target}) cannot be loaded: {error}", "install its package again, or remove it"
            ) from error
        harness: Harness = make(self._environ)
        return harness


@dataclass(frozen=True)
class _Given:
    """What the harnesses of this distribution are made with."""

    clock: Clock
    environ: Mapping[str, str]
    trust_enabled: bool
    accept_bypass: str
    permission_mode: str | None


def catalogue(
    clock: Clock,
    environ: Mapping[str, str],
    declared: Mapping[str, Declaration],
    *,
    trust_enabled: bool = True,
    accept_bypass: str = "auto",
    permission_mode: str | None = None,
) -> Harnesses:
    """Return every harness there is. `environ` is what the pane will inherit.

    No declared key hides a built-in one, and no installed one hides either of them.

    Raises InvalidValue for a declaration that cannot be used.
    """
    given = _Given(clock, environ, trust_enabled, accept_bypass, permission_mode)
    described = {key: _described(key, block, environ) for key, block in declared.items()}
    makers = {key: partial(described.__getitem__, key) for key in described}
    return Harnesses({**makers, **{name: partial(make, given) for name, make in _OURS.items()}}, environ)


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


def _claude(given: _Given) -> Harness:
    from core.harness.claude.adapter import ClaudeHarness

    return ClaudeHarness(
        given.clock,
        given.environ,
        trust_enabled=given.trust_enabled,
        accept_bypass=given.accept_bypass,
        permission_mode=given.permission_mode,
    )


def _codex(given: _Given) -> Harness:
    from core.harness.codex.adapter import CodexHarness

    return CodexHarness(given.environ, trust_enabled=given.trust_enabled)


def _opencode(given: _Given) -> Harness:
    from core.harness.opencode.adapter import OpenCodeHarness

    return OpenCodeHarness(given.environ)


def _gemini(given: _Given) -> Harness:
    from core.harness.gemini.adapter import GeminiHarness

    return GeminiHarness(given.environ, trust_enabled=given.trust_enabled)


def _cursor(_: _Given) -> Harness:
    from core.harness.generic import CursorHarness

    return CursorHarness()


def _bundled(_: _Given) -> Harness:
    from embedded.adapter import BundledHarness

    return BundledHarness()


_OURS = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
    "cursor": _cursor,
    "bundled": _bundled,
}
BUILT_IN = tuple(_OURS)  #: cursor is known, and refused at start by its adapter
