"""The value classes do what the standard library's frozen dataclasses do."""

import dataclasses
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import pytest

from core.base import values


@values.dataclass(frozen=True)
class Light:
    """A class as the product makes them."""

    name: str
    size: int = 3
    tags: Mapping[str, str] = values.field(default_factory=dict)
    seen: int = values.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True)
class Standard:
    """The same by the standard library."""

    name: str
    size: int = 3
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seen: int = dataclasses.field(default=0, compare=False)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a",), {}),
        (("a", 4), {}),
        (("a", 4, {"k": "v"}), {}),
        ((), {"name": "a", "tags": {"k": "v"}}),
        (("a",), {"size": 5}),
    ],
)
def test_instance_has_the_fields_of_a_standard_one(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """By position, by name and by default, each field gets the value that a dataclass would give it."""
    light, standard = Light(*given, **named), Standard(*given, **named)

    assert vars(light) == vars(standard)
    assert repr(light) == repr(standard).replace("Standard", "Light")
    assert light.__match_args__ == standard.__match_args__


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), (("a", 1, {}, 2, 3), {}), (("a",), {"name": "b"}), (("a",), {"colour": 1}), ((), {"nam": "a"})],
)
@pytest.mark.parametrize("make", [Light, Standard])
def test_wrong_arguments_are_refused(make: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """A missing, superfluous, doubled or unknown field is a TypeError in both."""
    with pytest.raises(TypeError):
        make(*given, **named)


def test_instance_cannot_be_changed() -> None:
    """Setting or deleting a field raises the standard library's own error."""
    value = Light("a")

    with pytest.raises(dataclasses.FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.name


def test_equality_and_hash_go_by_the_fields() -> None:
    """Equal fields are equal values; another class never is, and an unhashable field makes no hash."""
    plain = Light("a", tags=())  # type: ignore[arg-type]  # hashable, unlike a dict

    assert Light("a") == Light("a") != Light("b")
    assert Light("a") != cast(object, Standard("a"))
    assert Light("a", seen=1) == Light("a", seen=2)  # by a field that is not compared
    assert hash(plain) == hash(Light("a", tags=(), seen=1))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        hash(Light("a"))


def test_default_factory_is_called_for_each_instance() -> None:
    """Two instances never share what a factory made."""
    assert Light("a").tags is not Light("b").tags


@pytest.mark.parametrize("replace", [values.replace, dataclasses.replace])
def test_replace_returns_the_value_with_other_fields(replace: Callable[..., Light]) -> None:
    """Both ways of replacing change what is named, keep the rest, and know no other names."""
    changed = replace(Light("a", 7), name="b")

    assert changed == Light("b", 7)
    with pytest.raises(TypeError):
        replace(Light("a"), colour="red")


def test_standard_library_sees_the_fields() -> None:
    """`dataclasses.fields` and `asdict` work, with names, defaults and factories."""
    light, standard = dataclasses.fields(Light), dataclasses.fields(Standard)

    assert [(f.name, f.type, f.default, f.default_factory, f.compare) for f in light] == [
        (f.name, f.type, f.default, f.default_factory, f.compare) for f in standard
    ]
    assert dataclasses.asdict(Light("a")) == dataclasses.asdict(Standard("a"))


def test_value_survives_pickling() -> None:
    """A pickled value comes back equal."""
    assert pickle.loads(pickle.dumps(Light("a", 9))) == Light("a", 9)


class _WithHook:
    def __post_init__(self) -> None:
        """Do what the standard library's classes do after each is made."""


def _text(self: object) -> str:
    return "itself"


@pytest.mark.parametrize(
    ("bases", "annotations", "members", "told"),
    [
        ((Light,), {"more": int}, {}, "inherits the fields of Light"),
        ((Light,), {}, {}, "inherits the fields of Light"),
        ((Standard,), {"more": int}, {}, "inherits the fields of Standard"),
        ((), {"name": str}, {"__post_init__": _text}, "__post_init__"),
        ((_WithHook,), {"name": str}, {}, "__post_init__"),
        ((), {"name": str}, {"__init__": _text}, "__init__"),
        ((), {"name": str}, {"__repr__": _text}, "__repr__"),
        ((), {"name": str}, {"__eq__": _text}, "__eq__"),
        ((), {"name": str}, {"__slots__": ()}, "__slots__"),
        ((), {"name": str, "count": ClassVar[int]}, {}, "count"),
        ((), {"name": str, "count": "ClassVar[int]"}, {}, "count"),
        ((), {"name": str, "count": dataclasses.InitVar[int]}, {}, "count"),
        ((), {"_": dataclasses.KW_ONLY, "name": str}, {}, "_"),
        ((), {"name": str, "size": int}, {"name": "a"}, "size"),
        ((), {"name": str, "size": int}, {"name": "a", "size": values.field(compare=False)}, "size"),
        ((), {"tags": list}, {"tags": []}, "tags"),
        ((), {"tags": list}, {"tags": values.field(default=[])}, "tags"),
    ],
)
def test_class_that_would_differ_from_a_standard_one_is_not_made(
    bases: tuple[type, ...], annotations: dict[str, Any], members: dict[str, Any], told: str
) -> None:
    """What a type checker takes for granted and these classes do not do is a TypeError that names class and reason."""
    odd = type("Odd", bases, {**members, "__annotations__": annotations})

    with pytest.raises(TypeError, match=f"Odd.*{re.escape(told)}"):
        values.dataclass(frozen=True)(odd)
