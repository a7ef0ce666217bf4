"""The door for importers: `the_loop.connect().standing.list()`, in this process or over HTTP. See docs/sdk.md.

    with the_loop.connect() as loop:                     # this process works on the state, as the command line does
        loop.standing.say("scribe", "good morning")
    loop = the_loop.connect(url="http://127.0.0.1:4114", token=TOKEN)   # a service, over HTTP
    loop = the_loop.connect_async(...)                   # the same calls, awaited

Importing it imports nothing heavy: what a call needs is imported by that call.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.environment import absolute_entries
from core.base.errors import CoreError, InvalidValue, NotRunning, Refused, UnknownMessage, UnknownSession

if TYPE_CHECKING:  # at run time, `__getattr__` imports them
    from core.sdk.aio import TheLoop as AsyncTheLoop
    from core.sdk.loop import TheLoop
    from core.sdk.transport import OutcomeUnknown, ServiceUnreachable
    from core.sdk.types import (
        Answer,
        Conversation,
        Event,
        History,
        Logs,
        Loop,
        Loops,
        Message,
        Place,
        Posted,
        Queue,
        Queued,
        Reply,
        Request,
        Said,
        Screen,
        Session,
        Status,
    )

__all__ = [
    "Answer",
    "AsyncTheLoop",
    "Conversation",
    "CoreError",
    "Event",
    "History",
    "InvalidValue",
    "Logs",
    "Loop",
    "Loops",
    "Message",
    "NotRunning",
    "OutcomeUnknown",
    "Place",
    "Posted",
    "Queue",
    "Queued",
    "Refused",
    "Reply",
    "Request",
    "Said",
    "Screen",
    "ServiceUnreachable",
    "Session",
    "Status",
    "TheLoop",
    "UnknownMessage",
    "UnknownSession",
    "connect",
    "connect_async",
]


def __getattr__(name: str) -> Any:
    """Return a type that the calls answer with, or an error of the way to a service."""
    from core.sdk import aio, loop, transport, types

    found: Mapping[str, Any] = {
        "AsyncTheLoop": aio.TheLoop,
        "TheLoop": loop.TheLoop,
        "OutcomeUnknown": transport.OutcomeUnknown,
        "ServiceUnreachable": transport.ServiceUnreachable,
    }
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name] if name in found else getattr(types, name)


def connect(
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    url: str = "",
    socket: Path | None = None,
    token: str = "",
) -> "TheLoop":
    """Return a the-loop: that of the configuration in this process, or a service that is asked over HTTP.

    `config`: see `the-loop config path`. `url`: such as `http://127.0.0.1:4114`; `socket`: the path of a service's
    `local/http.sock`. `token`: default: the variable THE_LOOP_API_TOKEN, else the file `api-token` beside the socket.

    Raises ConfigError with everything that is wrong with the file, InvalidValue for an address that cannot be one or
    where there is no token.
    """
    from core.sdk.loop import TheLoop

    env = dict(os.environ if environ is None else environ)
    if not url and socket is None:
        from core.config.loading import load
        from core.process.presence import user_name
        from core.sdk.transport import Local
        from core.service.wiring import build_system

        if "PATH" in env:
            env["PATH"] = absolute_entries(env["PATH"])
        return TheLoop(Local(build_system(load(config, env), env), f"cli:{user_name()}"))
    from core.sdk.transport import Remote

    return TheLoop(Remote(token or _token(socket, env), url=url, socket=socket))


def connect_async(
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    url: str = "",
    socket: Path | None = None,
    token: str = "",
) -> "AsyncTheLoop":
    """Return the same for asyncio: every call is awaited."""
    from core.sdk.aio import TheLoop

    return TheLoop(connect(config, environ, url=url, socket=socket, token=token))


def _token(socket: Path | None, environ: Mapping[str, str]) -> str:
    given = environ.get("THE_LOOP_API_TOKEN", "").strip()
    if given:
        return given
    from core.base.files import read_token

    kept = read_token(socket.with_name("api-token")) if socket is not None else None
    if not kept:
        raise InvalidValue("there is no token", "give token=, or set THE_LOOP_API_TOKEN; docs/http.md says where it is")
    return kept
