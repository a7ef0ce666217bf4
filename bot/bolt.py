"""What of Bolt is used here that would load aiohttp's web server with it.

`slack_bolt.async_app` imports that server whole for the types of functions that nobody calls here, since Slack's
requests come by a socket or by the HTTP of core's: 2 MiB in a service that lives for weeks. While Bolt is imported,
empty types stand in for it. Whoever imports `aiohttp.web` afterwards gets the server itself.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import aiohttp

_WEB = "aiohttp.web"
_NAMED = ("Application", "Request", "Response")  #: by Bolt, in annotations


@contextmanager
def _without_web() -> Iterator[None]:
    """Let empty types stand for the web server; where it is loaded already nothing is saved, and it is left alone."""
    if _WEB in sys.modules:
        yield
        return
    stand_in = ModuleType(_WEB)
    vars(stand_in).update({name: type(name, (), {}) for name in _NAMED})
    sys.modules[_WEB] = stand_in
    vars(aiohttp)["web"] = stand_in
    try:
        yield
    finally:
        del sys.modules[_WEB], vars(aiohttp)["web"]


with _without_web():
    from slack_bolt.adapter.socket_mode.async_internals import send_async_response
    from slack_bolt.async_app import AsyncApp

__all__ = ["AsyncApp", "send_async_response"]
