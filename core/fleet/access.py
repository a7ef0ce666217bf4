"""How a host reaches the fleet's database: what an invitation carries, and the file in which a member keeps it. No I/O
but that file.

The file and the invitation hold a secret: neither is logged or shown, and `repr` leaves it out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from core.base.errors import CoreError, InvalidValue
from core.base.files import private_folder, read_plain, remove_file, write_private

_MARK = "the-loop-fleet-1."  #: begins an invitation
_MOST = 1 << 16  #: bytes of a file or an invitation
FILE = "access.json"
_NEXT = "access.next.json"  #: of a joining that is under way
_CA = "ca.pem"
_LOOPBACK = frozenset({"localhost", "::1"})


class InvitationRefused(CoreError):
    """An invitation cannot be used."""

    code = "invitation_refused"

    def __init__(self, why: str, host: str = "") -> None:
        super().__init__(
            f"the invitation was not taken: {why}", f"make another one: `the-loop fleet invite {host or 'HOST'}`"
        )


class NoAccess(CoreError):
    """This host has not joined a fleet, or its file cannot be read."""

    code = "no_access"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}", "`the-loop fleet join` with an invitation makes the file")


@dataclass(frozen=True)
class Access:
    """Where the database is, and as whom this host logs in."""

    host: str  #: this host's name in the fleet
    servers: str  #: names or addresses with commas between them, or the folder of a Unix socket
    ports: str  #: one, or one for each server with commas between them
    database: str
    role: str
    secret: str = field(repr=False)
    sslmode: str
    ca: str = field(
        default="", repr=False
    )  #: the certificates that sign the server's, PEM; "": those that the machine trusts
    ca_file: str = ""  #: where they are

    def parameters(self) -> dict[str, str]:
        """Return what libpq connects with."""
        trusted = {"sslrootcert": self.ca_file or _trusted()} if self.sslmode == "verify-full" else {}
        return {
            "host": self.servers,
            "port": self.ports,
            "dbname": self.database,
            "user": self.role,
            "password": self.secret,
            "sslmode": self.sslmode,
            "application_name": f"the-loop on {self.host}"[:63],
            **trusted,
        }

    def to_json(self) -> dict[str, str]:
        """Return its fields, the secret too; `ca_file` is of one machine and stays out."""
        return {name: getattr(self, name) for name in _KEPT}


def _trusted() -> str:
    """Return the file of the certificates that this machine trusts. libpq before 16 does not find it by itself."""
    import ssl  # here, since only a host of a fleet needs it

    return ssl.get_default_verify_paths().cafile or "system"


_KEPT = tuple(one.name for one in fields(Access) if one.name != "ca_file")


def _access(told: Any) -> Access:
    """Return what was told as JSON. Raises ValueError."""
    if (
        not isinstance(told, dict)
        or told.keys() != set(_KEPT)
        or not all(isinstance(value, str) for value in told.values())
    ):
        raise ValueError("it has other fields than an invitation or access of this release")
    return Access(**told)


def invitation(access: Access) -> str:
    """Return the text that a host joins with: one line, without blanks. Its secret counts once, for an hour."""
    told = json.dumps(access.to_json(), separators=(",", ":")).encode()
    return _MARK + base64.urlsafe_b64encode(told).rstrip(b"=").decode()


def invited(text: str) -> Access:
    """Return what an invitation says. Raises InvitationRefused."""
    text = "".join(text.split())  # as it may have been broken on its way
    if not text.startswith(_MARK) or len(text) > _MOST:
        raise InvitationRefused(f"it does not begin with {_MARK!r}")
    coded = text.removeprefix(_MARK)
    try:
        return _access(json.loads(base64.b64decode(coded + "=" * (-len(coded) % 4), b"-_", validate=True)))
    except ValueError as error:
        raise InvitationRefused("it is not whole") from error


def tls_mode(servers: str, asked: str = "", waived: Collection[str] = ()) -> str:
    """Return the sslmode for the servers: `verify-full`, unless all of them are on this machine or waived by name.

    `asked` is the sslmode that an address named. Raises InvalidValue where that is weaker than it has to be.
    """
    if all(is_local(server) or server in waived for server in servers.split(",")):
        return asked or "prefer"
    if asked not in {"", "verify-full"}:
        raise InvalidValue(
            f"sslmode={asked} does not prove that {servers} is the fleet's database",
            f"leave sslmode out, or name the server to do without: --without-tls-check {servers}",
        )
    return "verify-full"


def is_local(server: str) -> bool:
    """Return whether a connection to the server stays on this machine."""
    return not server or server.startswith(("/", "@", "127.")) or server in _LOOPBACK


def keep(folder: Path, access: Access, *, under_way: bool = False) -> Access:
    """Write the file, readable by this user alone, and return what it says, with the path of its certificates.

    `under_way`: beside the one that counts, until `settle`. Raises StoreBroken.
    """
    private_folder(folder)
    if access.ca:
        path = folder / _CA
        write_private(path, access.ca.encode())
        access = replace(access, ca_file=str(path))
    write_private(folder / (_NEXT if under_way else FILE), json.dumps(access.to_json(), indent=1).encode())
    return access


def settle(folder: Path) -> None:
    """Let the access that is under way count. Raises StoreBroken."""
    write_private(folder / FILE, read_plain(folder / _NEXT, _MOST))
    remove_file(folder / _NEXT)


def kept(folder: Path, *, under_way: bool = False) -> Access:
    """Return what the file says. Raises NoAccess."""
    path = folder / (_NEXT if under_way else FILE)
    try:
        found = _access(json.loads(read_plain(path, _MOST)))
    except FileNotFoundError as error:
        raise NoAccess(path, "this host has not joined a fleet") from error
    except (OSError, ValueError) as error:
        raise NoAccess(path, f"it cannot be read ({error})") from error
    return replace(found, ca_file=str(folder / _CA)) if found.ca else found


def forget(folder: Path) -> None:
    """Remove what a member keeps. Raises StoreBroken."""
    for name in (FILE, _NEXT, _CA):
        remove_file(folder / name)


def from_parameters(told: Mapping[str, str]) -> tuple[str, str, str]:
    """Return servers, ports and database of what libpq was told."""
    servers = told.get("host", "") or "localhost"
    return servers, told.get("port", "") or "5432", told.get("dbname", "") or "postgres"
