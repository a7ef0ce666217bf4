"""Who belongs to a fleet: its schema, invitations, joining, leaving."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from core.base.errors import InvalidValue
from core.fleet import access, membership, schema
from core.fleet.access import Access, InvitationRefused, NoAccess
from core.fleet.exchange import Answer, Evicted, ExchangeAway, HostPost, HostState, SecondIncarnation, new_id
from core.fleet.membership import AdminRefused, NoFleet, StillWaiting
from core.fleet.postgres import PostgresFleet, connected
from tests.support import postgres as postgres_support
from tests.support.fleets import BEAT, THREAD, PostgresRig, call, made_database, session, started
from tests.support.postgres import Cluster, needed, running_cluster


def test_init_may_be_repeated(postgres: PostgresRig) -> None:
    """What is there stays."""
    host = started(postgres.admit("lap"))

    assert membership.init(postgres.url) == schema.LAYOUT

    assert [one.name for one in host.hosts()] == ["lap"]


def test_init_says_what_the_admin_lacks(postgres: PostgresRig, cluster: Cluster) -> None:
    """A URL without the rights, one that leads nowhere, one that is none, and a database without a fleet."""
    lap = postgres.access("lap")
    url = f"postgresql://{lap.role}:{lap.secret}@{lap.servers}:{lap.ports}/{postgres.database}"

    with pytest.raises(AdminRefused, match="CREATEROLE"):
        membership.evict(url, "lap")
    with pytest.raises(ExchangeAway):
        membership.init("postgresql://admin:hidden@127.0.0.1:1/none")
    with pytest.raises(InvalidValue, match="URL") as refused:
        membership.init("postgresql://admin:hidden@[/none")
    assert "hidden" not in str(refused.value)
    with pytest.raises(NoFleet, match="fleet init"):
        membership.invite(cluster.url(), "lap")


def test_an_admin_need_not_be_a_superuser(cluster: Cluster, tmp_path: Path) -> None:
    """Managed databases give nobody such a role: one that owns the database and may make roles will do."""
    name = f"managed_{new_id()[:8]}"
    with cluster.admin() as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'plain'")
        admin.execute(f"CREATE DATABASE {name} OWNER {name}")
    url = cluster.url(name).replace(f"admin:{cluster.secret}", f"{name}:plain")

    membership.init(url)
    fleet = PostgresFleet(membership.join(membership.invite(url, "lap", gateway=True), tmp_path))
    host = started(fleet)
    lease = fleet.as_gateway().lease()
    assert lease is not None
    fleet.as_gateway().send(lease, [call("lap", "1")])

    assert [one.body for one in host.take(9)] == ["1"]
    membership.evict(url, "lap")
    with pytest.raises(Evicted):
        host.take(1)
    fleet.close()


def test_what_a_member_keeps_is_its_own(postgres: PostgresRig, tmp_path: Path) -> None:
    """The file is readable by its user alone, and its secret is not that of the invitation."""
    invitation = membership.invite(postgres.url, "lap")
    offered = access.invited(invitation)

    made = membership.join(invitation, tmp_path / "fleet")

    file = tmp_path / "fleet" / access.FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == [access.FILE]
    assert access.kept(tmp_path / "fleet") == made
    assert made.secret != offered.secret
    assert made.secret not in repr(made)
    with pytest.raises(psycopg.OperationalError):
        connected(offered.parameters())


def test_an_invitation_counts_once(postgres: PostgresRig, tmp_path: Path) -> None:
    """And not after another one for the same host, nor after an hour, nor if a part of it is missing."""
    used = membership.invite(postgres.url, "lap")
    membership.join(used, tmp_path / "1")
    replaced = membership.invite(postgres.url, "build")
    late = membership.invite(postgres.url, "build")
    postgres.let_pass(membership.INVITED_SECONDS + 1)

    for text, why in (
        (used, "used already"),
        (replaced, "replaced"),
        (late, "older than an hour"),
        (late[:-20], "not whole"),
        ("hello", "does not begin with"),
    ):
        with pytest.raises(InvitationRefused, match=why):
            membership.join(text, tmp_path / "2")

    with pytest.raises(NoAccess, match="has not joined"):
        access.kept(tmp_path / "2")


def test_a_joining_that_broke_off_is_finished_by_the_same_invitation(
    postgres: PostgresRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database knows the new secret, and the process died before it knew that."""
    invitation = membership.invite(postgres.url, "lap")
    with monkeypatch.context() as broken:
        broken.setattr(access, "settle", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            membership.join(invitation, tmp_path)

    made = membership.join(invitation, tmp_path)

    assert started(postgres.opened(made)).take(1) == ()
    assert access.kept(tmp_path) == made


def test_a_host_that_is_invited_again_works_until_it_joins(postgres: PostgresRig, tmp_path: Path) -> None:
    """Then its old secret does not count any more."""
    old = postgres.access("lap")
    host = started(postgres.opened(old))
    invitation = membership.invite(postgres.url, "lap", gateway=True)
    host.beat(BEAT)

    made = membership.join(invitation, tmp_path)

    with pytest.raises((Evicted, SecondIncarnation)):
        host.beat(BEAT)
    again = postgres.opened(made)
    assert started(again).hosts()[0].gateway
    assert again.as_gateway().lease() is not None


def test_a_host_leaves_once_nothing_waits(postgres: PostgresRig, tmp_path: Path) -> None:
    """Its sessions go with it, and it is listed as one that has left."""
    made = membership.join(membership.invite(postgres.url, "lap"), tmp_path)
    host = started(postgres.opened(made))
    host.publish([session("u1", THREAD)])
    host.hand_over([HostPost(new_id(), "u1", THREAD, 1, "post", "{}")])
    gateway = postgres.admit("gate", gateway=True)
    lease = gateway.as_gateway().lease()
    assert lease is not None
    gateway.as_gateway().send(lease, [call("lap")])

    with pytest.raises(StillWaiting, match="has not taken 1 messages, and 1 of its posts are not sent"):
        membership.leave(tmp_path)
    assert access.kept(tmp_path) == made
    host.done([Answer(one.id) for one in host.take(9)])
    with postgres.admin() as admin:
        admin.execute("UPDATE the_loop.posts SET result = '{}'")
    membership.leave(tmp_path)

    seen = started(gateway)
    assert seen.hosts()[1].state is HostState.LEFT
    assert seen.sessions() == b"[]"
    with pytest.raises(NoAccess):
        access.kept(tmp_path)
    with pytest.raises(Evicted):
        postgres.opened(made).as_host(new_id(), "m").beat(BEAT)


@pytest.mark.parametrize("name", ["", "-x", "a b", "x" * 41, "a@b", 'a"b', "Lap", "a.b", "a_b"])
def test_a_name_that_no_host_can_have_is_refused(postgres: PostgresRig, name: str) -> None:
    """Before anything is made: what `fleet.host` could not say is no name."""
    with pytest.raises(InvalidValue, match="is no host name"):
        membership.invite(postgres.url, name)


@pytest.mark.parametrize(
    ("servers", "asked", "waived", "mode"),
    [
        ("127.0.0.1", "", (), "prefer"),
        ("/var/run/postgresql", "", (), "prefer"),
        ("localhost,::1", "disable", (), "disable"),
        ("db.example", "", (), "verify-full"),
        ("db.example", "verify-full", (), "verify-full"),
        ("db.example", "", ("db.example",), "prefer"),
        ("db.example", "require", ("db.example",), "require"),
        ("localhost,db.example", "", (), "verify-full"),
        ("a.example,b.example", "", ("a.example",), "verify-full"),
    ],
)
def test_another_machine_has_to_prove_that_it_is_the_database(
    servers: str, asked: str, waived: tuple[str, ...], mode: str
) -> None:
    """Unless the server is on this machine, or waived by its name."""
    assert access.tls_mode(servers, asked, waived) == mode


def test_a_weaker_proof_is_refused() -> None:
    """It says what to do."""
    with pytest.raises(InvalidValue, match=r"--without-tls-check db\.example"):
        access.tls_mode("db.example", "require")


def test_an_invitation_carries_the_certificates_that_the_admin_trusts(tmp_path: Path) -> None:
    """They are kept beside the secret; without any, those of the machine count."""
    made = Access("lap", "db.example", "5432", "fleet", "role", "secret", "verify-full", "-----BEGIN …")

    kept = access.keep(tmp_path, access.invited(access.invitation(made)))

    assert Path(kept.parameters()["sslrootcert"]).read_text() == "-----BEGIN …"
    assert access.kept(tmp_path) == kept
    assert replace(made, ca="").parameters()["sslrootcert"] != ""
    assert "sslrootcert" not in replace(made, sslmode="prefer").parameters()


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, str]]:
    """Give a server that shows a certificate for `localhost`, and that certificate."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the program openssl")
    folder = tmp_path_factory.mktemp("certificates")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([program, *words.split(), *files], check=True, capture_output=True, timeout=60)
    shown = {name: (folder / name).read_bytes() for name in ("key.pem", "cert.pem")}
    settings = {"ssl": "on", "ssl_key_file": "key.pem", "ssl_cert_file": "cert.pem"}
    with running_cluster(needed(), settings, shown) as made:
        yield made, shown["cert.pem"].decode()


def test_a_server_that_does_not_prove_itself_gets_no_secret(proved: tuple[Cluster, str], tmp_path: Path) -> None:
    """Its certificate has to be one that the admin trusts, and for the name by which it is reached."""
    server, certificate = proved
    rig = PostgresRig(server, made_database(server), tmp_path / "members")
    known = replace(rig.access("lap"), servers="localhost", sslmode="verify-full", ca=certificate)
    well = access.keep(tmp_path / "well", known)
    unknown = access.keep(tmp_path / "unknown", replace(known, ca=""))
    other_name = replace(well, servers="127.0.0.1")

    fleet = rig.opened(well)
    assert started(fleet).take(1) == ()
    for made in (unknown, other_name):
        with pytest.raises(ExchangeAway, match="certificate"):
            rig.opened(made).as_host(new_id(), "m").beat(BEAT)

    rig.close()


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_where_there_is_no_server_the_tests_say_what_to_type(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    """They are skipped by name, and never pass unseen where a change is judged."""
    monkeypatch.setattr(postgres_support, "programs", lambda: None)
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match=r"sh scripts/provide\.sh postgresql"):
        needed()
