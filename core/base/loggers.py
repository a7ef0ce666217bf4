"""Loggers for modules that every command imports. `logging` itself is imported at the first record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.base.values import deferred

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable


_shapes: list[Callable[[], None]] = []


def logger(name: str) -> logging.Logger:
    """Return the logger of that name, made at its first use."""

    def make() -> logging.Logger:
        import logging

        while _shapes:
            _shapes.pop()()
        return logging.getLogger(name)

    return deferred(make)


def before_first_line(shape: Callable[[], None]) -> None:
    """Have `shape` called before the first of these loggers is used: it says where lines go, and how they look."""
    _shapes[:] = [shape]
