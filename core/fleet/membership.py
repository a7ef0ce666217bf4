"""Who belongs to the fleet: its schema is made, hosts are invited, join, leave and are evicted.

`init`, `invite` and `evict` need the URL of the fleet's admin: a role that owns the schema and may make roles. It is
given each time and never stored. `join` and `leave` are a host's own.

An invitation is a role of its own, whose password counts for an hour by the database's clock; the database keeps it
hashed, as every password. Joining gives that role a password that only the host knows and makes it the host's role, in
one transaction; the role that the host had before may not log in any more. So an invitation works once, and a host that
is invited again goes on with its old role until it joins.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from core.base.clock import Clock, SystemClock
from core.base.errors import CoreError, InvalidValue, Refused
from core.base.files import read_plain
from core.base.names import check_name
from core.fleet import access as files
from core.fleet import schema
from core.fleet.access import Access, InvitationRefused, NoAccess, from_parameters, invited, tls_mode
from core.fleet.exchange import Evicted, ExchangeAway, LayoutUnknown, UnknownHost
from core.fleet.postgres import Database, connected, refusal, told

INVITED_SECONDS = 3_600
_OLDEST_SERVER = 150000  #: PostgreSQL 15
_CONNECTIONS = 20  #: of one host at most
_MOST_CA = 1 << 16

#: How long the server lets a member's statement, lock and transaction last, in milliseconds; a pooler keeps these.
_LIMITS = {
    "statement_timeout": "4000",
    "lock_timeout": "3000",
    "idle_in_transaction_session_timeout": "60000",
    "default_transaction_isolation": "read committed",
    "search_path": "",
    "timezone": "UTC",
}


class AdminRefused(CoreError):
    """The admin's URL does not lead to a role that may do this."""

    code = "admin_refused"


class NoFleet(Refused):
    """The database has no fleet in it."""

    code = "no_fleet"

    def __init__(self) -> None:
        super().__init__("the database has no fleet in it", "`the-loop fleet init` with the same URL makes one")


class StillWaiting(Refused):
    """A host that leaves has not taken all that waits for it."""

    code = "still_waiting"

    def __init__(self, host: str, calls: int, posts: int) -> None:
        super().__init__(
            f"{host} has not taken {calls} messages, and {posts} of its posts are not sent",
            "wait until both are zero, or give them up: `the-loop fleet evict` with the admin's URL",
        )


def _parts(url: str) -> dict[str, str]:
    """Return what the URL says, as libpq takes it. Raises InvalidValue without the URL, in which there is a secret."""
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        raise InvalidValue("the admin's URL is not one", allowed="postgresql://ROLE:SECRET@SERVER/DATABASE") from None


@contextmanager
def _admin(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Give a connection in one transaction. Raises AdminRefused, ExchangeAway, InvalidValue."""
    parts = _parts(url)
    try:
        connection = connected(parts, autocommit=False)
    except psycopg.Error as error:
        raise ExchangeAway(told(error)) from error
    try:
        with connection:
            if connection.info.server_version < _OLDEST_SERVER:
                raise AdminRefused(
                    f"the server is PostgreSQL {connection.info.server_version // 10_000}", "use 15 or newer"
                )
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise AdminRefused(
            f"the role {parts.get('user', '')!r} may not do this: {told(error)}",
            "use the role that made the fleet; it owns the schema the_loop and has CREATEROLE",
        ) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise NoFleet from error
    except psycopg.OperationalError as error:
        raise ExchangeAway(told(error)) from error


def init(url: str) -> int:
    """Make the schema and the two groups, or bring them up to date, and return the layout. Raises as `_admin`."""
    with _admin(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('the_loop'))")  # within this transaction only
        there = connection.execute("SELECT to_regclass('the_loop.fleet') IS NOT NULL").fetchone()
        if there is not None and there[0]:
            done, fleet = _row(connection, "SELECT layout, id FROM the_loop.fleet")
            if not isinstance(done, int) or done > schema.LAYOUT:
                raise LayoutUnknown(int(str(done)), schema.OLDEST_LAYOUT, schema.LAYOUT)
        else:
            done, fleet = 0, secrets.token_hex(3)
            connection.execute("CREATE SCHEMA the_loop")
        hosts, gateways = _groups(str(fleet))
        if done == 0:
            for group in (hosts, gateways):
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(group))
            database = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, hosts))
        for step in schema.LAYOUTS[done:]:
            for name, group in (("{hosts}", hosts), ("{gateways}", gateways)):
                step = step.replace(name, group.as_string(connection))
            connection.execute(step.encode())
        connection.execute("DELETE FROM the_loop.fleet")
        connection.execute(
            "INSERT INTO the_loop.fleet (id, layout, serves_from) VALUES (%s, %s, %s)",
            (fleet, schema.LAYOUT, schema.SERVES_FROM),
        )
    return schema.LAYOUT


def _row(connection: psycopg.Connection[tuple[object, ...]], question: LiteralString) -> tuple[object, ...]:
    row = connection.execute(question).fetchone()
    if row is None:
        raise NoFleet
    return row


def _groups(fleet: str) -> tuple[sql.Identifier, sql.Identifier]:
    """Return the groups of hosts and of gateways: roles are shared by all databases of a server."""
    return sql.Identifier(f"the_loop_hosts_{fleet}"), sql.Identifier(f"the_loop_gateways_{fleet}")


def invite(
    url: str, host: str, *, gateway: bool = False, address: str = "", without_tls_check: Collection[str] = ()
) -> str:
    """Return an invitation for a host, which counts once and for an hour. Raises as `_admin`, InvalidValue.

    `address` is `SERVER[:PORT]` as the host reaches it; "": as the URL says. `without_tls_check` names servers whose
    certificate need not be proved.
    """
    check_name(host, "host")
    parts = _parts(url)
    servers, ports, database = from_parameters(parts)
    if address:
        servers, _, port = address.partition(":")
        ports = port or ports
    sslmode = tls_mode(servers, parts.get("sslmode", ""), without_tls_check)
    ca = _certificates(parts.get("sslrootcert", "")) if sslmode.startswith("verify") else ""
    secret = secrets.token_urlsafe(32)
    with _admin(url) as connection:
        (fleet,) = _row(connection, "SELECT id FROM the_loop.fleet")
        hosts, gateways = _groups(str(fleet))
        name = f"the_loop_{fleet}_{host}_{secrets.token_hex(3)}"
        role = sql.Identifier(name)
        connection.execute(
            "INSERT INTO the_loop.hosts (name, state, gateway) VALUES (%s, 'invited', %s) ON CONFLICT DO NOTHING",
            (host, gateway),
        )
        connection.execute("INSERT INTO the_loop.streams (host) VALUES (%s) ON CONFLICT DO NOTHING", (host,))
        _forget_invitations(connection, host)
        hashed = connection.pgconn.encrypt_password(secret.encode(), name.encode(), b"scram-sha-256").decode()
        (until,) = _row(connection, f"SELECT now() + interval '{INVITED_SECONDS} s'")
        connection.execute(
            sql.SQL(
                "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT "
                "CONNECTION LIMIT {} PASSWORD {} VALID UNTIL {}"
            ).format(role, sql.Literal(_CONNECTIONS), sql.Literal(hashed), sql.Literal(str(until)))
        )
        for setting, value in _LIMITS.items():
            connection.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(role, sql.Identifier(setting), sql.Literal(value))
            )
        connection.execute(sql.SQL("GRANT {} TO {}").format(hosts, role))
        if gateway:
            connection.execute(sql.SQL("GRANT {} TO {}").format(gateways, role))
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))  # whose sessions it can end, then
        connection.execute(
            "INSERT INTO the_loop.invitations (role, host, gateway, until) VALUES (%s, %s, %s, %s)",
            (name, host, gateway, until),
        )
    return files.invitation(Access(host, servers, ports, database, name, secret, sslmode, ca))


def _certificates(path: str) -> str:
    """Return the certificates that the admin trusts the server by; "" for those of the machine. Raises InvalidValue."""
    if path in {"", "system"}:
        return ""
    try:
        return read_plain(Path(path), _MOST_CA).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"sslrootcert={path} cannot be read: {error}") from error


def _forget_invitations(connection: psycopg.Connection[tuple[object, ...]], host: str) -> None:
    """Let no earlier invitation of the host count."""
    rows = connection.execute("DELETE FROM the_loop.invitations WHERE host = %s RETURNING role", (host,)).fetchall()
    for (role,) in rows:
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(str(role))))


def join(text: str, folder: Path, clock: Clock | None = None) -> Access:
    """Become the host that an invitation names, and return its access, which is kept in the folder.

    The new secret is written before the database is told it, so that a crash in between loses nothing: the same
    invitation may be given again. Raises InvitationRefused, ExchangeAway, StoreBroken.
    """
    offered = invited(text)
    clock = clock or SystemClock()
    try:
        begun = files.kept(folder, under_way=True)
    except NoAccess:
        begun = None
    if begun is not None and begun.role == offered.role and _is_in(begun, clock):
        files.settle(folder)
        return begun
    mine = files.keep(folder, replace(offered, secret=secrets.token_urlsafe(32)), under_way=True)
    try:
        with connected(replace(offered, ca_file=mine.ca_file).parameters()) as connection:
            verifier = connection.pgconn.encrypt_password(mine.secret.encode(), mine.role.encode(), b"scram-sha-256")
            connection.execute("SELECT * FROM the_loop.join_as(%s)", (verifier.decode(),))
    except psycopg.Error as error:
        if error.sqlstate == schema.INVITATION:
            raise InvitationRefused(error.diag.message_detail or "", offered.host) from error
        if refusal(error) is not None:
            raise InvitationRefused(
                "it was used already, is older than an hour, or was replaced", offered.host
            ) from error
        raise ExchangeAway(told(error)) from error
    files.settle(folder)
    return mine


def _is_in(access: Access, clock: Clock) -> bool:
    """Return whether the database knows the access. Raises ExchangeAway."""
    database = Database(access, clock)
    try:
        return database.ask("SELECT the_loop.me()")[0][0] is not None
    except (Evicted, ExchangeAway) as error:
        if isinstance(error, ExchangeAway) and error.code == ExchangeAway.code:
            raise
        return False
    finally:
        database.close()


def leave(folder: Path, clock: Clock | None = None) -> None:
    """Take this host out of the fleet with its sessions. Raises StillWaiting, ExchangeAway, Evicted, NoAccess."""
    access = files.kept(folder)
    database = Database(access, clock or SystemClock())
    try:
        with database.lent() as connection:
            try:
                connection.execute("SELECT the_loop.leave()")
            except psycopg.Error as error:
                if error.sqlstate != schema.WAITING:
                    raise
                calls, posts = (error.diag.message_detail or "0\t0").split("\t")
                raise StillWaiting(access.host, int(calls), int(posts)) from error
    finally:
        database.close()
    files.forget(folder)


def evict(url: str, host: str) -> None:
    """Take a host out of the fleet: it cannot log in, what it has open ends, and its lease goes to the next gateway.

    What waits for it stays. Raises as `_admin`, UnknownHost.
    """
    with _admin(url) as connection:
        row = connection.execute(
            "UPDATE the_loop.hosts SET state = 'evicted' WHERE name = %s RETURNING role", (host,)
        ).fetchone()
        if row is None:
            raise UnknownHost(host)
        _forget_invitations(connection, host)
        connection.execute(
            "UPDATE the_loop.lease SET token = '', until = '-infinity' WHERE holder = %s AND token <> ''", (host,)
        )
        if row[0] is not None:
            role = sql.Identifier(str(row[0]))
            connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(role))
        connection.execute("SELECT pg_notify('the_loop_gateway', '')")
    if row[0] is not None:
        with _admin(url) as connection:  # once nobody can log in any more, since that is committed
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (row[0],))
