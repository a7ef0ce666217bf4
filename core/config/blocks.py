"""The base of the models of the configuration's blocks, and the kinds of values with their rules.

It is apart from `schema` because a channel's settings use it too, and building all models costs 2.5 MiB.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from core.base.errors import InvalidValue
from core.base.names import check_name
from core.base.text import parse_duration
from core.config.settings import key_bytes
from core.model.session import ChatBinding

NAME_RULE = "1 to 40 of a-z, 0-9 and `-`, beginning with a letter or digit"


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression of Python ({error})") from error
    return text


def _keys(text: str) -> str:
    key_bytes(text)
    return text


def _session_name(text: str) -> str:
    try:
        return check_name(text)
    except InvalidValue as error:
        raise ValueError(NAME_RULE) from error


def _span(text: str) -> str:
    parse_duration(text)
    return text


def matching(pattern: str, allowed: str) -> Any:
    """Return the annotation of a text that matches; `allowed` says the pattern in words, for people."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(allowed)
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": f"^{pattern}$"})


class Block(BaseModel):
    """A mapping of the file: camelCase keys, no others, no conversion between types.

    A section that is written but empty (all its lines are comments) is null in YAML and counts as left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_empty_sections(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        empty = {
            found.alias
            for found in cls.model_fields.values()
            if found.default_factory is not None and data.get(found.alias, "") is None
        }
        return {key: value for key, value in data.items() if key not in empty}


Argument = Annotated[str, Field(min_length=1)]
Path_ = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
TmuxSeconds = Annotated[float, Field(ge=2, le=60)]  # deadlines in tmux are of whole seconds: one second may be none
SocketName = Annotated[
    str, *matching("(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})?", "up to 64 letters, digits, `.`, `_` and `-`, or empty")
]
Host = Annotated[
    str,
    *matching(
        "[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}",
        "a host name or an IP address, without brackets",
    ),
]
HostName = Annotated[str, *matching("([a-z0-9][a-z0-9-]{0,39})?", f"{NAME_RULE}, or empty")]
VariableName = Annotated[
    str, *matching("[A-Za-z_][A-Za-z0-9_]{0,127}", "the name of an environment variable, never the token itself")
]
Duration = Annotated[str, AfterValidator(_span)]
Name = Annotated[str, AfterValidator(_session_name)]
Regex = Annotated[str, AfterValidator(_regex)]
Keys = Annotated[str, Field(min_length=1), AfterValidator(_keys)]


class ThreadBlock(Block):
    """The session's thread in a chat."""

    enabled: bool = Field(ChatBinding.enabled, description="Whether the session has a thread there")
    channel: str = Field(ChatBinding.channel, description='Channel id; "" means the channel of the chat\'s own block')
    authorized_users: list[str] | None = Field(
        default=None,
        description="Who of the chat's authorizedUsers may steer this session; null: all of them; []: nobody",
    )
