"""What a host's role may not do, whatever it sends to the database: the rights are the tables', not the functions'."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from core.base.values import replace
from core.fleet.access import Access
from core.fleet.exchange import Answer, HostPost, new_id
from core.fleet.postgres import connected
from tests.support.fleets import THREAD, PostgresRig, call, made_database, session, started
from tests.support.postgres import Cluster

OTHER = replace(THREAD, thread="200.2")
_CALL = "INSERT INTO the_loop.calls (id, host, number, uid, kind, body) VALUES "
_POST = "INSERT INTO the_loop.posts (host, id, uid, chat, team, channel, thread, rank, kind, body) VALUES "
_ANSWER = "INSERT INTO the_loop.answers (call, host, body, until) VALUES "
_SESSION = "INSERT INTO the_loop.sessions (uid, host, name, shown, members) VALUES "
_NONE = "'{}', '{}', '{}', '{}', '{}', '{}'"
#: What raises, in the hands of `lap`, which is no gateway: `build` has all that there is.
DENIED = {
    "a call for itself": _CALL + "('x', 'lap', 1, '', 'k', '1')",
    "a call for another": _CALL + "('x', 'build', 1, '', 'k', '1')",
    "a call by the function": "SELECT the_loop.send('', '{x}', '{build}', '{k}', '{1}', '{}', '{NULL}', "
    f"{_NONE})",
    "another text of a call": "UPDATE the_loop.calls SET body = '1'",
    "another's post": _POST + "('build', 'x', 'u9', 'talk', 'T1', 'C1', '100.1', 1, 'post', '1')",
    "a post into another's thread": _POST + "('lap', 'x', 'u1', 'talk', 'T1', 'C1', '100.1', 1, 'post', '1')",
    "a post of another's session": _POST + "('lap', 'x', 'u9', 'talk', 'T1', 'C1', '', 1, 'post', '1')",
    "a post with its result": _POST.replace("body", "body, result")
    + "('lap', 'x', 'u1', 'talk', 'T1', 'C1', '', 1, 'post', '1', '2')",
    "the result of a post": "UPDATE the_loop.posts SET result = '1'",
    "another's answer": _ANSWER + "('theirs', 'build', '1', now())",
    "an answer to another's call": _ANSWER + "('theirs', 'lap', '1', now())",
    "another's session": _SESSION + "('u7', 'build', 'n', '{\"a\":1}', '')",
    "a session that changes hands": "UPDATE the_loop.sessions SET host = 'lap' WHERE uid = 'u9'",
    "a route of another": "INSERT INTO the_loop.routes VALUES ('talk', 'T1', 'C1', '7', 'u9', 'build', '', NULL, '')",
    "a route to another's": "INSERT INTO the_loop.routes VALUES ('talk', 'T1', 'C1', '7', 'u9', 'lap', '', NULL, '')",
    "another's thread": "INSERT INTO the_loop.routes VALUES ('talk', 'T1', 'C1', '100.1', 'u1', 'lap', '', NULL, '')",
    "a cursor": "UPDATE the_loop.routes SET cursor = '9'",
    "a blob for another": "INSERT INTO the_loop.blobs (host, id, piece, data) VALUES ('build', 'x', 0, 'x')",
    "the lease": "UPDATE the_loop.lease SET until = now() + interval '1 day'",
    "the lease's token": "SELECT token FROM the_loop.lease",
    "the lease by the function": "SELECT the_loop.elect('mine', 10)",
    "all routes": "SELECT * FROM the_loop.routed(NULL, NULL, NULL, NULL)",
    "all posts": "SELECT * FROM the_loop.waiting('', 9)",
    "a gateway's flag": "UPDATE the_loop.hosts SET gateway = true",
    "a host's state": "UPDATE the_loop.hosts SET state = 'active'",
    "a host's role": "UPDATE the_loop.hosts SET role = 'x'",
    "a new host": "INSERT INTO the_loop.hosts (name, state, gateway) VALUES ('new', 'active', true)",
    "order numbers": "UPDATE the_loop.streams SET next_seq = 0",
    "invitations": "SELECT * FROM the_loop.invitations",
    "an invitation of its own": "INSERT INTO the_loop.invitations VALUES (session_user, 'build', true, 'infinity')",
    "a used invitation": "SELECT the_loop.join_as('SCRAM-SHA-256$4096:YQ==$YQ==:YQ==')",
    "the layout": "UPDATE the_loop.fleet SET layout = 9",
    "a table": "CREATE TABLE the_loop.mine (a int)",
    "a schema": "CREATE SCHEMA mine",
    "another function": "CREATE OR REPLACE FUNCTION the_loop.me() RETURNS text LANGUAGE sql AS $$ SELECT 'build' $$",
    "rights off": "ALTER TABLE the_loop.calls DISABLE ROW LEVEL SECURITY",
    "no row rights": "SET row_security = off; SELECT * FROM the_loop.calls",
    "a role": "CREATE ROLE mine",
    "more rights": "ALTER ROLE CURRENT_USER SUPERUSER",
    "a longer password": "ALTER ROLE CURRENT_USER VALID UNTIL 'infinity'",
    "somebody else": "SET SESSION AUTHORIZATION admin",
    "the server's files": "SELECT pg_read_file('PG_VERSION')",
    "the server's programs": "COPY (SELECT 1) TO PROGRAM 'true'",
    "passwords": "SELECT * FROM pg_authid",
}
#: What touches nothing of another's.
NOTHING = {
    "another's calls": "SELECT * FROM the_loop.calls WHERE host = 'build'",
    "another's posts": "SELECT * FROM the_loop.posts WHERE host = 'build'",
    "another's answers": "SELECT * FROM the_loop.answers WHERE host = 'build'",
    "another's files": "SELECT * FROM the_loop.blobs WHERE host = 'build'",
    "another's routes": "SELECT * FROM the_loop.routes WHERE host = 'build'",
    "another's beat": "UPDATE the_loop.hosts SET seen_at = now() WHERE name = 'build' RETURNING 1",
    "another's calls, deleted": "DELETE FROM the_loop.calls WHERE host = 'build' RETURNING 1",
    "another's calls, taken": "UPDATE the_loop.calls SET taken_at = now() WHERE host = 'build' RETURNING 1",
    "another's posts, deleted": "DELETE FROM the_loop.posts WHERE host = 'build' RETURNING 1",
    "another's sessions, deleted": "DELETE FROM the_loop.sessions WHERE host = 'build' RETURNING 1",
    "another's sessions, renamed": "UPDATE the_loop.sessions SET name = 'x' WHERE host = 'build' RETURNING 1",
    "another's files, deleted": "DELETE FROM the_loop.blobs WHERE host = 'build' RETURNING 1",
}


@pytest.fixture(scope="module")
def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresRig]:
    """Give a fleet in which `build` has one of everything."""
    rig = PostgresRig(cluster, made_database(cluster), tmp_path_factory.mktemp("members"))
    gateway = rig.admit("gate", gateway=True).as_gateway()
    lease = gateway.lease()
    assert lease is not None
    build = started(rig.admit("build"))
    build.publish([session("u9", THREAD)])
    answered, theirs = call("build"), replace(call("build"), id="theirs")
    gateway.send(lease, [answered, theirs])
    build.done([Answer(answered.id, "1")])
    build.hand_over([HostPost(new_id(), "u9", THREAD, 1, "post", "1")])
    build.put_blob("file", [b"x"])
    gateway.release(lease)
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def access(stage: PostgresRig) -> Access:
    """Give the access of `lap`, which has a session of its own."""
    made = stage.access("lap")
    started(stage.opened(made)).publish([session("u1", OTHER)])
    return made


@pytest.fixture
def lap(access: Access) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Give a connection of the role of `lap`."""
    connection = connected(access.parameters())
    yield connection
    connection.close()


@pytest.mark.parametrize("attempt", DENIED)
def test_a_host_may_not(lap: psycopg.Connection[tuple[object, ...]], attempt: str) -> None:
    """The database refuses it, and says that it may not or that it cannot be."""
    with pytest.raises(psycopg.Error) as refused:
        lap.execute(DENIED[attempt])

    # no right, another's row there already, no such session of this host, or no invitation
    assert refused.value.sqlstate in {"42501", "23505", "23503", "TL008"}


@pytest.mark.parametrize("attempt", NOTHING)
def test_a_host_sees_and_changes_nothing_of_anothers(
    lap: psycopg.Connection[tuple[object, ...]], stage: PostgresRig, attempt: str
) -> None:
    """Though there is something."""
    rows = lap.execute(NOTHING[attempt]).fetchall()

    table = NOTHING[attempt].split("the_loop.")[1].split()[0]
    with stage.admin() as admin:
        there = admin.execute(f"SELECT count(*) FROM the_loop.{table}").fetchone()
    assert rows == []
    assert there is not None
    assert there[0] != 0


def test_a_group_that_it_takes_on_changes_nothing(lap: psycopg.Connection[tuple[object, ...]]) -> None:
    """Who has logged in counts. It may not take on the gateways' group at all."""
    (group,) = lap.execute("SELECT 'the_loop_hosts_' || id FROM the_loop.fleet").fetchone() or ("",)
    lap.execute(f'SET ROLE "{group}"')

    assert lap.execute("SELECT the_loop.me()").fetchone() == ("lap",)
    assert lap.execute("SELECT DISTINCT host FROM the_loop.routes").fetchall() == [("lap",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        lap.execute(f'SET ROLE "{str(group).replace("hosts", "gateways")}"')


def test_who_listens_learns_that_something_happened_and_no_more(
    lap: psycopg.Connection[tuple[object, ...]], stage: PostgresRig
) -> None:
    """Notifications have no rights, so they carry nothing."""
    lap.execute('LISTEN "the_loop_gateway"; LISTEN "the_loop_host_build"')

    gateway = stage.admit("gate-2", gateway=True).as_gateway()
    lease = gateway.lease()
    assert lease is not None
    gateway.send(lease, [call("build", '"secret"')])
    gateway.release(lease)

    heard = list(lap.notifies(timeout=5, stop_after=2))
    assert {one.channel for one in heard} == {"the_loop_host_build", "the_loop_gateway"}
    assert {one.payload for one in heard} == {""}


def test_an_evicted_role_may_do_nothing_with_what_it_has_open(postgres: PostgresRig) -> None:
    """Even where its connection was not ended."""
    made = postgres.access("lap")
    started(postgres.opened(made)).publish([session("u1", OTHER)])
    with connected(made.parameters()) as lap, postgres.admin() as admin:
        admin.execute("UPDATE the_loop.hosts SET state = 'evicted' WHERE name = 'lap'")

        assert lap.execute("SELECT the_loop.me()").fetchone() == (None,)
        for table in ("routes", "sessions", "hosts", "calls", "posts"):
            assert lap.execute(f"SELECT * FROM the_loop.{table}").fetchall() == []


def test_eviction_ends_what_is_open_and_lets_nobody_in(postgres: PostgresRig) -> None:
    """NOLOGIN alone would leave an open connection at work."""
    access = postgres.access("lap")
    connection = connected(access.parameters())

    postgres.evict("lap")

    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1, pg_sleep(2)")
    connection.close()
    with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
        connected(access.parameters())


def test_a_gateway_may_send_and_may_not_change_the_schema(postgres: PostgresRig) -> None:
    """DDL and roles are the admin's."""
    connection = connected(postgres.access("gate", gateway=True).parameters())

    for attempt in ("a table", "a schema", "another function", "rights off", "a role", "more rights", "invitations"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(DENIED[attempt])

    connection.close()
