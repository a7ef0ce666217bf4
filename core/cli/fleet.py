"""`the-loop fleet init|invite|join|list|leave|evict`, and what other commands do for `NAME@HOST`.

`init`, `invite` and `evict` log in as the fleet's admin, by a URL that only a variable holds: it is never stored or
printed. `join` and `leave` are this host's own, by its secret in local/fleet/. Nothing else of the command line speaks
with the database: what the service knows it is asked for.
"""

from __future__ import annotations

import getpass
import json
import shlex
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from core.base.errors import CoreError, InvalidValue, Refused
from core.base.names import check_name
from core.cli.printing import EXIT_OK, print_hosts, print_json, print_line, print_row, print_rows, warn
from core.cli.session import Session

ADMIN = "THE_LOOP_FLEET_ADMIN"
_SECONDS = 15.0  #: that the service has: it gives the database five


class LibraryMissing(CoreError):
    """The library that speaks with PostgreSQL is not there: one machine alone does not need it."""

    code = "library_missing"

    def __init__(self, why: ImportError) -> None:
        super().__init__(
            f"a fleet needs psycopg and libpq, and they cannot be imported: {why}",
            "`make fleet` in the folder of the-loop, or `pip install 'the-loop[fleet]'`",
        )


def init(session: Session) -> int:
    """Run `the-loop fleet init`."""
    members, url = _members(), _admin_url(session)
    session.acting(session.system)
    layout = members.init(url)
    return _tell(
        session,
        f"The fleet's database is ready (layout {layout}). Invite its hosts, one that speaks with the chat first: "
        "`the-loop fleet invite HOST --gateway`",
        {"layout": layout},
    )


def invite(
    session: Session, host: str, gateway: bool, address: str, without_tls_check: tuple[str, ...] | None = None
) -> int:
    """Run `the-loop fleet invite`: the invitation alone is on standard output, so that it can go through a pipe."""
    members, url = _members(), _admin_url(session)
    session.acting(session.system)
    made = members.invite(url, host, gateway=gateway, address=address, without_tls_check=without_tls_check or ())
    seconds = members.INVITED_SECONDS
    if session.json:
        print_json({"host": host, "gateway": gateway, "invitation": made, "seconds": seconds})
        return EXIT_OK
    print_line(made)
    warn(
        f"This invitation makes one machine the host {host}. It holds a secret, works once, and for "
        f"{seconds // 60} minutes. On {host}: `the-loop fleet join`, which asks for it."
    )
    return EXIT_OK


def join(session: Session) -> int:
    """Run `the-loop fleet join`. The invitation is read from standard input, which a terminal does not show."""
    from core.fleet.access import NoAccess, kept

    members, folder = _members(), session.system.paths.fleet
    session.acting(session.system)
    try:
        before = kept(folder).host
    except NoAccess:
        before = ""
    mine = members.join(_invitation(), folder)
    source = session.system.settings.source or "the configuration file (`the-loop config init` makes one)"
    text = (
        f"This machine is the host {mine.host}. Its secret is in {folder}, which only you can read.\n"
        f"Set fleet.enabled to true in {source}, then type `the-loop restart`."
    )
    if before not in ("", mine.host):
        text += f"\nBefore, it was {before}. Unless another machine is {before} now, take that host out: "
        text += f"`the-loop fleet evict {before}`"
    return _tell(session, text, {"host": mine.host, "folder": str(folder), "before": before or None})


def leave(session: Session) -> int:
    """Run `the-loop fleet leave`."""
    from core.fleet.access import kept

    members, folder = _members(), session.system.paths.fleet
    session.acting(session.system)
    host = kept(folder).host
    members.leave(folder)
    return _tell(
        session,
        f"{host} has left the fleet, and its secret is removed. Its sessions run on, and no chat reaches them by the "
        "fleet.\nSet fleet.enabled to false, then type `the-loop restart`.",
        {"host": host},
    )


def evict(session: Session, host: str) -> int:
    """Run `the-loop fleet evict`."""
    members, url = _members(), _admin_url(session)
    session.acting(session.system)
    members.evict(url, host)
    return _tell(
        session,
        f"{host} cannot log in to the fleet's database any more, and its open connections are ended. Its agents may "
        "run on there: nobody but that machine can end them. What waits for its sessions is kept.",
        {"host": host},
    )


class NotInFleet(Refused):
    """A host of a fleet is asked for where the configuration switches none on."""

    code = "not_in_fleet"

    def __init__(self) -> None:
        super().__init__(
            "this machine is no host of a fleet: fleet.enabled is false",
            "join one with `the-loop fleet join`, then set fleet.enabled to true, and type `the-loop restart`",
        )


class OnAnotherHost(Refused):
    """A command would have to act on another host."""

    code = "on_another_host"

    def __init__(self, words: str, name: str, host: str) -> None:
        super().__init__(
            f"{name} is on {host}, and a command line acts on its own machine's sessions alone: nothing was sent",
            f"`ssh -t {host} the-loop {words} {name} …`, or in the chat, where NAME@HOST is understood",
        )


class UnknownThere(CoreError, LookupError):
    """Another host shows no session of that name."""

    code = "unknown_session"

    def __init__(self, name: str, host: str) -> None:
        super().__init__(
            f"{host} shows no session called {name!r} to the fleet", f"look at `the-loop standing list --host {host}`"
        )


class FleetRefused(Refused):
    """What the service said of why it could not tell."""

    def __init__(self, failed: Mapping[str, str]) -> None:
        super().__init__(failed["message"], failed["remedy"])
        self.code = failed["code"]  # type: ignore[misc]  # of the error that it was there


def list_hosts(session: Session) -> int:
    """Run `the-loop fleet list`."""
    session.acting(session.system)
    told, _ = _asked(session, what="hosts")
    if session.json:
        print_json({"host": told["host"], "listening": told["listening"], "hosts": told["hosts"]})
    else:
        print_hosts(told["hosts"])
    return EXIT_OK


def list_fleet(session: Session, host: str) -> int:
    """Run `the-loop standing list --all|--host HOST`. As JSON the rows are printed as they came."""
    _, rows = _asked(session, what="sessions", host=host)
    if session.json:
        print_line(rows.decode())
    else:
        print_rows(json.loads(rows), session.exact)
    return EXIT_OK


def elsewhere(session: Session, name: str, **given: Any) -> tuple[str, int | None]:
    """Return the session's name, and the exit code if `NAME@HOST` is another host's and the command was answered.

    Raises OnAnotherHost for a command that would have to act there.
    """
    name, _, host = name.partition("@")
    if not session.settings.fleet.enabled:
        raise NotInFleet
    check_name(name)
    if host == _own_name(session):
        return name, None
    check_name(host)
    words = session.command.cli
    session.acting(session.system)
    if words == "standing attach":
        typed = ["ssh", "-t", host, f"the-loop {words} {name}{' --write' if given['write'] else ''}"]
        if session.json:
            print_json({"name": name, "host": host, "command": typed})
        else:
            print_line(shlex.join(typed))
        return name, EXIT_OK
    if words != "standing get":
        raise OnAnotherHost(words, name, host)
    rows = [row for row in json.loads(_asked(session, what="sessions", host=host)[1]) if row["name"] == name]
    if not rows:
        raise UnknownThere(name, host)
    if session.json:
        print_json(rows[0])
    else:
        print_row(rows[0])
    return name, EXIT_OK


def _own_name(session: Session) -> str:
    """Return this host's name in the fleet. Raises NoAccess."""
    if session.settings.fleet.host:
        return session.settings.fleet.host
    from core.fleet.access import kept

    return kept(session.system.paths.fleet).host


def _asked(session: Session, **question: str) -> tuple[Mapping[str, Any], bytes]:
    """Ask this machine's service, which alone asks the fleet's database. Raises CoreError: why it could not tell."""
    from core.process.control import NoAnswer, ask_for_bytes
    from core.process.presence import running_service

    if not session.settings.fleet.enabled:
        raise NotInFleet
    paths = session.system.paths
    if running_service(paths.service_lock) is None:
        raise Refused("the service knows the fleet, and no service is running", "start it: `the-loop start`")
    try:
        told, rest = ask_for_bytes(paths.service_socket, "fleet", _SECONDS, **question)
    except NoAnswer as error:
        remedy = "if fleet.enabled was set after the service began: `the-loop restart`; else see local/service.log"
        raise NoAnswer(error.message, remedy) from error
    if "failed" in told:
        raise FleetRefused(told["failed"])
    return told, rest


def _members() -> ModuleType:
    """Return core.fleet.membership. Raises LibraryMissing."""
    try:
        from core.fleet import membership
    except ImportError as error:
        raise LibraryMissing(error) from error
    return membership


def _admin_url(session: Session) -> str:
    """Return the URL of the fleet's admin. Raises InvalidValue."""
    url = session.environ.get(ADMIN, "").strip()
    if not url:
        raise InvalidValue(
            f"the variable {ADMIN} is not set: this command logs in as the fleet's admin",
            "set it for this one command, to postgresql://ROLE:SECRET@SERVER/DATABASE",
        )
    return url


def _invitation() -> str:
    """Return what was given on standard input, or to a prompt that does not show it. Raises InvalidValue."""
    from core.cli.reading import standard_input

    try:
        given = getpass.getpass("Invitation (not shown): ") if sys.stdin.isatty() else standard_input().decode()
    except (EOFError, UnicodeDecodeError):
        given = ""
    if not given.strip():
        raise InvalidValue(
            "no invitation was given",
            "paste the line that `the-loop fleet invite HOST` printed, or give it on standard input",
        )
    return given.strip()


def _tell(session: Session, text: str, told: dict[str, Any]) -> int:
    if session.json:
        print_json(told)
    else:
        print_line(session.exact(text))
    return EXIT_OK
