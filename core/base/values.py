"""Frozen value classes that cost a starting process almost nothing, and values that are made at their first use.

A type checker sees the standard library's dataclasses. At run time these classes do what the product uses of them:
fields, defaults and default factories, equality, hash and repr. `dataclasses.replace` and `dataclasses.fields` accept
their instances. A class that asks for more than that is refused when it is made. The standard ones would take a third
of the time of a command that only reads: 10 ms to import `dataclasses` (which imports `inspect`), and half a
millisecond for each class (docs/adr/0004, 0048).
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

__all__ = ["dataclass", "field", "field_names", "replace"]

_T = TypeVar("_T")


class _Field:
    """What a class says of a field: a default, or what makes one for each instance; whether two values differ by it."""

    def __init__(self, default: Any, make: Callable[[], Any] | None, *, compare: bool) -> None:
        self.default = default
        self.make = make
        self.compare = compare


_NONE = object()  #: no default


class _StandardFields:
    """What `dataclasses` looks for in a class; made at its first look, since that imports it."""

    def __init__(
        self, defaults: dict[str, Any], factories: dict[str, Callable[[], Any]], compared: tuple[str, ...]
    ) -> None:
        self._defaults = defaults
        self._factories = factories
        self._compared = compared

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        from dataclasses import field, make_dataclass

        compared = self._compared
        given: dict[str, Any] = {name: field(compare=name in compared) for name in owner.__annotations__}
        for name, value in self._defaults.items():
            given[name] = field(default=value, compare=name in compared)
        for name, make in self._factories.items():
            given[name] = field(default_factory=make, compare=name in compared)
        described = [(name, kind, given[name]) for name, kind in owner.__annotations__.items()]
        found: dict[str, Any] = make_dataclass("Described", described).__dataclass_fields__  # type: ignore[attr-defined]
        owner.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


def field_names(value: object) -> tuple[str, ...]:
    """Return the names of the class's fields, in their order."""
    return value.__match_args__  # type: ignore[attr-defined, no-any-return]


def _refuse(self: object, name: str, *_: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _fields(value: object) -> tuple[Any, ...]:
    return tuple([value.__dict__[name] for name in value.__compared__])  # type: ignore[attr-defined]


def _equal(self: object, other: object) -> bool:
    if type(other) is type(self) and self.__dict__ == other.__dict__:  # a comparison in C, where most are the same
        return True
    return _fields(self) == _fields(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_fields(self))


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in field_names(self))
    return f"{type(self).__qualname__}({shown})"


def _misfit(made: object, given: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    names = field_names(made)
    wrong = [name for name in named if name not in names]
    twice = [name for name in names[: len(given)] if name in named]
    missing = [name for name in names if name not in made.__dict__]
    more = len(given) - len(names)
    return TypeError(f"{type(made).__name__}: {missing=} {twice=} {wrong=}" + (f" {more=}" if more > 0 else ""))


def _initializer(names: tuple[str, ...], defaults: dict[str, Any], factories: dict[str, Callable[[], Any]]) -> Any:
    expected = frozenset(names)

    def __init__(self: object, *given: Any, **named: Any) -> None:
        values = self.__dict__
        values.update(defaults)
        values.update(named)
        if given:
            values.update(zip(names, given, strict=False))
            if len(given) > len(names) or not named.keys().isdisjoint(names[: len(given)]):
                raise _misfit(self, given, named)
        for name, make in factories.items():
            if name not in values:
                values[name] = make()
        if values.keys() != expected:
            raise _misfit(self, given, named)

    return __init__


_MADE_HERE = ("__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__", "__slots__")
_NO_FIELDS = frozenset({"ClassVar", "InitVar", "KW_ONLY", "_KW_ONLY_TYPE"})  #: annotations with a meaning of their own


def _obstacle(cls: type, defaults: dict[str, Any]) -> str:
    """Return what the standard library's decorator would do otherwise than this one; "" for nothing."""
    for base in cls.__mro__[1:]:
        if "__dataclass_fields__" in base.__dict__:
            return f"it inherits the fields of {base.__name__}"
    if hasattr(cls, "__post_init__"):
        return "its __post_init__ would not be called"
    for name in _MADE_HERE:
        if cls.__dict__.get(name) is not None:
            return f"its {name} would be replaced"
    before = ""  # a field with a default
    for name, kind in cls.__annotations__.items():
        if _named(kind) in _NO_FIELDS:
            return f"{name} is annotated as {_named(kind)}, and would be a field"
        value = defaults.get(name, _NONE)
        if type(value) is _Field:
            value = value.make or value.default
        if value is not _NONE:
            before = name
            if value.__class__.__hash__ is None:
                return f"the default of {name} would be shared by all: give a default_factory"
        elif before:
            return f"{name} has no default, and follows {before}, which has one"
    return ""


def _named(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2]
    return getattr(annotation, "__name__", "") or type(annotation).__name__


def _prepared(cls: type[_T]) -> type[_T]:
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    if obstacle := _obstacle(cls, defaults):
        raise TypeError(f"{cls.__name__}: {obstacle}; use the standard library's dataclass")
    said = {name: value for name, value in defaults.items() if type(value) is _Field}
    factories = {name: value.make for name, value in said.items() if value.make is not None}
    for name, value in said.items():
        if value.default is _NONE:
            delattr(cls, name)
            del defaults[name]
        else:
            setattr(cls, name, value.default)
            defaults[name] = value.default
    compared = tuple(name for name in names if name not in said or said[name].compare)
    shape: dict[str, Any] = {
        "__match_args__": names,
        "__compared__": compared,
        "__dataclass_fields__": _StandardFields(defaults, factories, compared),
        "__init__": _initializer(names, defaults, factories),
        "__eq__": _equal,
        "__hash__": _hash,
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
    }
    for name, value in shape.items():
        setattr(cls, name, value)
    return cls


def _dataclass(*, frozen: bool) -> Callable[[type[_T]], type[_T]]:
    """Return the decorator. Raises TypeError for a class that shall not be frozen: values are.

    The decorator raises TypeError for a class of which the standard library's would make something else.
    """
    if not frozen:
        raise TypeError("only frozen classes are made here; use the standard library's for others")
    return _prepared


def _field(*, default: Any = _NONE, default_factory: Callable[[], Any] | None = None, compare: bool = True) -> Any:
    """Return what a class says of a field: its default, or what makes one; whether equality and hash go by it."""
    return _Field(default, default_factory, compare=compare)


def _replace(value: _T, /, **changes: Any) -> _T:
    """Return the value with other fields. Raises TypeError for a name that is no field."""
    kind = type(value)
    made = object.__new__(kind)
    fields = made.__dict__
    fields.update(value.__dict__)
    fields.update(changes)
    if len(fields) != len(field_names(value)):
        raise _misfit(made, (), changes)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _field, _replace


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
