"""A PostgreSQL cluster of the tests' own: in a temporary folder, on loopback, by an unprivileged user.

The server refuses to run as root, so the tests of root have it run by `nobody` or `postgres`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

ADMIN = "admin"
MISSING = "the tests of a fleet need PostgreSQL 15 or newer; type: sh scripts/provide.sh postgresql"
_OLDEST = 15


def programs() -> Path | None:
    """Return the folder of the newest server programs that can be used; None: there are none."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    for root in (Path("/usr/lib/postgresql"), Path("/usr/local/opt"), Path("/opt/homebrew/opt")):
        found += [path.parent for path in root.glob("*/bin/initdb")]
    usable = [(version, folder) for folder in found if (version := _version(folder)) >= _OLDEST]
    return max(usable)[1] if usable else None


def _version(folder: Path) -> int:
    told = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False, timeout=20)
    digits = told.stdout.rsplit(" ", 1)[-1].split(".")[0].strip() if "Debian" not in told.stdout else ""
    digits = digits or (told.stdout.split(") ")[1].split(".")[0] if ") " in told.stdout else "")
    return int(digits) if digits.isdigit() else 0


def needed() -> Path:
    """Return the folder of the programs. Where there are none, the test is skipped by name, and fails in CI."""
    found = programs()
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    return found


@contextmanager
def running_cluster(
    bin_folder: Path, settings: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None
) -> Iterator[Cluster]:
    """Give a server that runs, with those files in its folder, and remove it in the end."""
    made = Cluster(bin_folder, settings)
    try:
        for name, data in (files or {}).items():
            made.put(name, data)
        made.start()
        yield made
    finally:
        made.remove()


def _user() -> dict[str, int | list[int]]:
    """Return as whom the server runs, as `subprocess` takes it."""
    if os.geteuid() != 0:
        return {}
    known = {one.pw_name: one for one in pwd.getpwall()}
    who = known.get("postgres") or known["nobody"]
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


class Cluster:
    """One server. `start` and `stop` may be called as often as a test likes; `remove` at the end."""

    def __init__(self, bin_folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._bin = bin_folder
        self._settings = dict(settings or {})
        self._user = _user()
        # Not below the tests' own folder, into which no other user can look.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self.data = self.folder / "data"
        self.secret = secrets.token_urlsafe(12)
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._make()

    def _make(self) -> None:
        password = self.folder / "password"
        password.write_text(self.secret)
        if self._user:
            for path in (self.folder, password):
                os.chown(path, self._user["user"], self._user["group"])  # type: ignore[arg-type]
        words = ["--auth=scram-sha-256", f"--pwfile={password}", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]
        made = subprocess.run(
            [self._bin / "initdb", "-D", self.data, "-U", ADMIN, *words],
            cwd=self.folder, capture_output=True, text=True, check=False, timeout=60, **self._user,  # type: ignore[call-overload]
        )  # fmt: skip
        assert made.returncode == 0, made.stderr

    def put(self, name: str, data: bytes) -> None:
        """Write a file into the server's folder, readable by it alone."""
        path = self.data / name
        path.write_bytes(data)
        path.chmod(0o600)
        if self._user:
            os.chown(path, self._user["user"], self._user["group"])  # type: ignore[arg-type]

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": "200",
            "logging_collector": "off",
            **self._settings,
        }
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, *(f"--{name}={value}" for name, value in settings.items())],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._user,  # type: ignore[call-overload]
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._server.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End the server: at once and without order by SIGQUIT, with what was promised by SIGINT."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(30)
            self._server = None

    def signal(self, what: signal.Signals) -> None:
        """Send the server and all its processes a signal, such as SIGSTOP."""
        assert self._server is not None
        import psutil

        server = psutil.Process(self._server.pid)
        for process in [server, *server.children(recursive=True)]:
            process.send_signal(what)

    def url(self, database: str = "postgres") -> str:
        """Return the admin's URL, over loopback."""
        return f"postgresql://{ADMIN}:{self.secret}@127.0.0.1:{self.port}/{database}"

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Return a connection of the admin, in autocommit."""
        return psycopg.connect(self.url(database), autocommit=True)

    def make_database(self, name: str) -> None:
        """Make an empty database."""
        with self.admin() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def copy(self, to: str) -> None:
        """Copy the files of the server, which does not run, to a folder beside them."""
        assert self._server is None
        shutil.rmtree(self.folder / to, ignore_errors=True)
        _copy_tree(self.data, self.folder / to)

    def restore(self, of: str) -> None:
        """Put such a copy in the place of the files of the server, which does not run."""
        assert self._server is None
        shutil.rmtree(self.data)
        _copy_tree(self.folder / of, self.data)

    def remove(self) -> None:
        """End the server and remove its files."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _copy_tree(of: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", of, to], check=True, timeout=60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
