"""Something that is made at its first use, so that a command imports what it uses and nothing else."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


def deferred(make: Callable[[], _T]) -> _T:
    """Return what stands for the thing that `make` makes, once, at the first look at one of its attributes."""
    return cast(_T, _Deferred(make))


class _Deferred:
    """Safe for several threads: the first one makes the thing, the others wait for it."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._made: object = None

    def __getattr__(self, name: str) -> Any:
        with self._making:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)
