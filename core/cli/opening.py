"""`the-loop page`: the link by which a browser logs in to the service's page, and how that page is reached."""

from __future__ import annotations

import socket
from typing import Any

from core.base.errors import Refused
from core.base.files import remove_file
from core.base.values import dataclass, field
from core.config.settings import ServiceSettings
from core.http.facts import bracketed, is_loopback, is_wildcard
from core.http.logins import LINK_SECONDS, read_logins
from core.process.control import ask
from core.process.presence import running_service
from core.session.system import System

_SECONDS = 5.0
_FORWARDED = 4114  #: a port of the other machine, in examples


class NoService(Refused):
    """The page is the service's, and none runs."""

    code = "no_service"

    def __init__(self) -> None:
        super().__init__("the page is served by the service, and no service is running", "start it: `the-loop start`")


@dataclass(frozen=True)
class Told:
    """What the command answers: sentences, and the same as JSON."""

    text: str
    json: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return self.json


def new_link(system: System, actor: str) -> Told:
    """Return a new link. Raises NoService, NoAnswer, StoreBroken."""
    if running_service(system.paths.service_lock) is None:
        raise NoService
    told = ask(system.paths.service_socket, "page", _SECONDS, actor=actor)
    return link_told(system, str(told["key"]), told["port"])


def link_told(system: System, key: str, port: int | None) -> Told:
    """Return what to say of a link. `port`: where the service listens; None: at its Unix socket alone."""
    settings, path = system.settings.service, system.paths.http_socket
    here = None if port is None else _address(settings)
    minutes, ending = round(LINK_SECONDS / 60), f"/#login={key}"
    elsewhere = f"http://localhost:{_FORWARDED}{ending}"
    way = path if here is None else f"{here}:{port}"
    forward = f"ssh -L {_FORWARDED}:{way} {socket.gethostname()}"
    json = {
        "url": None if here is None else f"http://{here}:{port}{ending}",
        "elsewhere": {"command": forward, "url": elsewhere},
        "seconds": LINK_SECONDS,
        "socket": str(path),
    }
    good = f"The link logs in one browser, within {minutes} minutes."
    there = f"  {forward}\n  {elsewhere}"
    if here is not None:
        return Told(f"{json['url']}\n\n{good}\nFrom another machine, run this there and open this link:\n{there}", json)
    source = system.settings.source or "the configuration file (`the-loop config init` makes one)"
    why = (
        "service.port is not set, so no browser of this machine reaches the page."
        if port is None
        else f"service.host is {settings.host}, and the page is served over loopback only."
    )
    wanted = "service.port to 4114" if port is None else "service.host to 127.0.0.1"
    return Told(
        f"{why}\nTo open it here: set {wanted} in {source}, type `the-loop restart`, then `the-loop page`.\n"
        f"Without a change, by ssh: run this on the machine with the browser, and open this link:\n{there}\n\n{good}",
        json,
    )


def _address(settings: ServiceSettings) -> str | None:
    """Return at which address of loopback it listens, as a URL has it; None for none."""
    if is_wildcard(settings.host):
        return "127.0.0.1"
    return bracketed(settings.host) if is_loopback(settings.host) else None


def log_all_out(system: System, actor: str) -> Told:
    """Log all browsers out, also where no service runs. Raises NoAnswer, StoreBroken."""
    if running_service(system.paths.service_lock) is None:
        ended = len(read_logins(system.paths.page_logins))
        remove_file(system.paths.page_logins)
        system.events.emit("page.logged_out", actor=actor, detail=f"{ended} browsers")
    else:
        ended = int(ask(system.paths.service_socket, "page-end", _SECONDS, actor=actor)["ended"])
    browsers = "1 browser is" if ended == 1 else f"{ended} browsers are"
    return Told(f"{browsers} logged out, and no unused link is good any more.", {"ended": ended})
