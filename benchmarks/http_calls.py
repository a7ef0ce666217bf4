"""The API of a running service: what HTTP adds to a call, and many clients at once.

The floor of a call is the same call of core, in a process that has a control client. Of two hundred clients at once
each call must be answered; the floor is one client that makes the same calls one after the other.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measuring import Ratio, call_time, compare, report
from benchmarks.stage import Stage, declared, script, stage, wait_for
from core.delivery.saying import say
from core.http.host import api_token
from core.lifecycle.look import list_standing
from core.process.control import NoAnswer, ask
from core.session.system import System

BOUND = 3.0
RUNS = 51
SESSIONS = 50
CLIENTS, CALLS = 200, 5
CROWD_BOUND = 1.5
CROWDS = 3
NAME = "session-00"
_SECONDS = 120.0


class Client:
    """Asks the service over one connection that it keeps."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def list(self) -> Any:
        """List the sessions."""
        return self._asked("GET", "/standing-sessions", None)

    def say(self) -> Any:
        """Commit a message, and do not wait for it."""
        return self._asked("POST", "/standing-sessions/say", {"name": NAME, "text": "hello", "wait": 0})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _asked(self, method: str, path: str, body: Any) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        self._connection.request(method, f"/api/v1{path}", sent, self._headers)
        response = self._connection.getresponse()
        told = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {told[:200]!r}")
        return json.loads(told)


def ratios() -> Iterator[Ratio]:
    """Yield the ratios of list and say over HTTP to the core call alone, and of a crowd to one client."""
    with stage() as here:
        here.configure({**declared(SESSIONS), "service": {"port": 0}, "limits": {"queuedPerSession": 10_000}})
        here.record_all()
        system = here.system(persistent=True)
        with _serving(here, system) as (port, token):
            client = Client(port, token)
            try:
                yield compare(
                    (f"HTTP list of {SESSIONS} sessions", call_time(client.list)),
                    ("list_standing alone", call_time(lambda: list_standing(system))),
                    bound=BOUND,
                    runs=RUNS,
                )
                yield compare(
                    ("HTTP say, committed", call_time(client.say)),
                    ("say alone, committed", call_time(lambda: say(system, NAME, "hello", actor="cli:bench", wait=0))),
                    bound=BOUND,
                    runs=RUNS,
                )
                yield compare(
                    (f"{CLIENTS} clients at once, {CALLS} calls each", call_time(lambda: _crowd(port, token))),
                    (f"one client, the same {CLIENTS * CALLS} calls", call_time(lambda: _alone(port, token))),
                    bound=CROWD_BOUND,
                    runs=CROWDS,
                )
            finally:
                client.close()
                system.close()


@contextmanager
def _serving(here: Stage, system: System) -> Iterator[tuple[int, str]]:
    """Run the service, and give its port and its token."""
    service = subprocess.Popen(
        [script("the-loop"), "serve"], env=here.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = wait_for(lambda: _url(system), "the service listens")
        yield int(url.rpartition(":")[2]), api_token(system.paths.api_token, "", {})
    finally:
        service.terminate()
        service.wait(60)


def _url(system: System) -> str | None:
    try:
        rows = ask(system.paths.service_socket, "status", 5.0)["services"]
    except NoAnswer:
        return None
    return next((row["detail"] for row in rows if row["name"] == "http" and row["running"]), None)


def _calls(client: Client) -> None:
    for number in range(CALLS):
        (client.say if number % CALLS == 1 else client.list)()


def _alone(port: int, token: str) -> None:
    client = Client(port, token)
    for _ in range(CLIENTS):
        _calls(client)
    client.close()


def _crowd(port: int, token: str) -> None:
    """Let all clients connect, then call at once. Raises RuntimeError if one call was not answered."""
    begin, failed = threading.Barrier(CLIENTS), list[str]()
    threads = [threading.Thread(target=_one_of_many, args=(port, token, begin, failed)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(f"{len(failed)} of {CLIENTS} clients were not held, first: {failed[0]}")


def _one_of_many(port: int, token: str, begin: threading.Barrier, failed: list[str]) -> None:
    client = Client(port, token)
    try:
        begin.wait(_SECONDS)
        _calls(client)
    except (OSError, http.client.HTTPException, RuntimeError) as error:
        failed.append(f"{type(error).__name__}: {error}")
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(max(report([ratio]) for ratio in ratios()))
