"""The fleet: whether this host has joined it safely, whether its database answers, and who speaks with the chat."""

from collections.abc import Iterator

from core.base.errors import CoreError
from core.base.paths import StatePaths
from core.fleet.access import Access, is_local, kept
from core.model.health import Finding, State
from core.process.control import ask
from core.process.presence import running_service

SECONDS = 20.0  #: the service gives the database five
_ASK_SECONDS = 15.0


def joined(paths: StatePaths) -> Iterator[Finding]:
    """Look at what this host keeps of its joining."""
    try:
        yield connection(kept(paths.fleet))
    except CoreError as error:
        yield Finding("fleet: joined", State.FAILED, error.message, error.remedy)


def connection(access: Access) -> Finding:
    """Return whether the database has to prove by its certificate that it is the fleet's."""
    where = f"as {access.host}, with the database at {access.servers}"
    if access.sslmode == "verify-full":
        return Finding("fleet: joined", State.OK, f"{where}, which proves by its certificate that it is the one")
    if all(map(is_local, access.servers.split(","))):
        return Finding("fleet: joined", State.OK, f"{where}, on this machine")
    return Finding(
        "fleet: joined",
        State.WARNING,
        f"{where}, whose certificate is not checked (sslmode={access.sslmode}): whoever stands between can read and "
        "change everything",
        f"`the-loop fleet invite {access.host}` without --without-tls-check, then `the-loop fleet join` here",
    )


def asked(paths: StatePaths) -> Iterator[Finding]:
    """Ask the service how it stands with the fleet's database."""
    if running_service(paths.service_lock) is None:
        told = "the service asks the fleet's database, and no service is running"
        yield Finding("fleet: database", State.UNKNOWN, told, "`the-loop start`")
        return
    try:
        answer = ask(paths.service_socket, "fleet", _ASK_SECONDS, what="hosts")
    except CoreError as error:
        yield Finding("fleet: database", State.UNKNOWN, error.message, "`the-loop restart`, if fleet.enabled is new")
        return
    if "failed" in answer:
        failed = answer["failed"]
        yield Finding("fleet: database", State.FAILED, failed["message"], failed["remedy"])
        return
    if answer["listening"]:
        yield Finding("fleet: database", State.OK, "it answers, and tells of changes at once")
    else:
        told = "it answers, and tells of no changes, so it is asked each second: a pooler swallows them"
        yield Finding("fleet: database", State.WARNING, told, "invite the host with --address of the server itself")
    speaking = [one["host"] for one in answer["hosts"] if one["speaks"]]
    able = [one["host"] for one in answer["hosts"] if one["gateway"] and one["state"] == "active"]
    if speaking:
        yield Finding("fleet: gateway", State.OK, f"{speaking[0]} speaks with the chat for all hosts")
    else:
        remedy = f"start the service on {' or '.join(able)}" if able else "`the-loop fleet invite HOST --gateway`"
        yield Finding("fleet: gateway", State.FAILED, "no host speaks with the chat now: what is said waits", remedy)
