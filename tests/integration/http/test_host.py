"""The HTTP host of a running service: who is answered, what, and what happens where it cannot listen."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.http.conftest import Answered, Web
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

LOCAL = "127.0.0.1"
SECONDS = 2  #: how long tmux may take to answer


def http_row(alone: Product) -> dict[str, object]:
    """Return the row of the HTTP host in `status`."""
    [row] = [row for row in alone.cli("status", "--json").json["services"] if row["name"] == "http"]
    return dict(row)


def test_health_needs_no_token_and_tells_no_secret(alone: Product, web: Web) -> None:
    """Service, tmux and channels, and neither a session's name nor a path nor the token."""
    service = alone.serve().wait_swept()

    answered = web.get("/health")

    assert answered.status == 200
    assert answered.json["ok"] is True
    assert answered.json["service"]["pid"] == service.pid
    assert answered.json["service"]["uptimeSeconds"] > 0
    assert (answered.json["tmux"], answered.json["channels"]) == ("ok", {})
    for private in (NAME, str(alone.folder), web.token):
        assert private not in answered.text


def test_health_says_when_tmux_is_silent(alone: Product, web: Web) -> None:
    """A frozen tmux makes the service unwell, and it answers at once all the same."""
    document = alone.document()
    document["routing"]["tmux"]["commandTimeoutSeconds"] = SECONDS
    alone.configure(json.dumps(document))
    alone.serve().wait_swept()
    pid = int(alone.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: web.get("/health").json["tmux"] == "silent", "the silence is noticed")
        answered, took = _quickest(lambda: web.get("/health"))
    finally:
        os.kill(pid, signal.SIGCONT)

    assert (answered.status, answered.json["ok"]) == (200, False)
    assert took < SECONDS  # else it would have asked tmux
    wait_until(lambda: web.get("/health").json["ok"], "it is well again")


def _quickest(ask: Callable[[], Answered]) -> tuple[Answered, float]:
    """Return an answer, and the seconds of the quickest of five: what waits for something waits each time."""
    times = []
    for _ in range(5):
        began = time.monotonic()
        answered = ask()
        times.append(time.monotonic() - began)
    return answered, min(times)


def test_a_channel_that_is_away_is_told(talking: Product) -> None:
    """By its kind and whether it is connected, without its reason."""
    talking.serve(env={"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-wrong"}).wait_swept()

    answered = Web(talking).get("/health")

    assert answered.json["channels"] == {"slack": False}
    assert answered.json["ok"] is False
    assert "xoxb" not in answered.text


def test_everything_else_needs_the_token(served: Web) -> None:
    """401 in the one shape, before anybody learns what there is."""
    for path in ("/metrics", "/nowhere", "/docs", "/openapi.json"):
        answered = served.get(path)
        assert answered.status == 401
        assert answered.headers["www-authenticate"] == "Bearer"
        assert set(answered.json["error"]) == {"code", "message", "remedy"}
        assert answered.json["error"]["code"] == "unauthorized"
    assert served.get("/metrics", {"Authorization": f"Bearer {served.token}"}).status == 200


def test_with_the_token_what_is_not_there_is_404_and_a_wrong_method_405(served: Web) -> None:
    """In the one shape, too."""
    token = {"Authorization": f"Bearer {served.token}"}

    missing = served.get("/nowhere", token)
    assert (missing.status, missing.json["error"]["code"]) == (404, "not_found")
    assert served.get("/docs", token).status == 404
    wrong = served.get("/metrics", token, method="POST")
    assert (wrong.status, wrong.json["error"]["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_a_name_that_was_pointed_at_us_gets_nothing(served: Web, path: str) -> None:
    """DNS rebinding: the browser sends the attacker's host; the token would not help."""
    port = served.url.rpartition(":")[2]
    token = {"Authorization": f"Bearer {served.token}"}

    answered = served.get(path, {**token, "Host": f"evil.example:{port}"})

    assert (answered.status, answered.json["error"]["code"]) == (403, "host_not_allowed")
    assert served.get(path, {**token, "Host": f"localhost:{port}"}).status == 200


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_a_page_of_another_origin_gets_nothing(served: Web, path: str) -> None:
    """A cross-site request names its origin; our own passes."""
    token = {"Authorization": f"Bearer {served.token}"}

    answered = served.get(path, {**token, "Origin": "https://evil.example"})

    assert (answered.status, answered.json["error"]["code"]) == (403, "origin_not_allowed")
    assert served.get(path, {**token, "Origin": served.url}).status == 200


def test_the_token_is_made_once_and_stays_over_restarts(alone: Product, web: Web) -> None:
    """It is 0600, never in the log, the events or the answers, and the next service takes the same."""
    first = alone.serve().wait_swept()
    url, token = web.url, web.token
    first.stop()
    second = alone.serve().wait_swept()

    assert web.token == token
    assert url != ""
    assert alone.paths.api_token.stat().st_mode & 0o777 == 0o600
    status = alone.cli("status", "--json")
    for text in (first.output(), second.output(), alone.paths.events.read_text(), status.out, status.err):
        assert token not in text


def test_the_operators_own_token_comes_from_the_environment_and_reaches_no_pane(alone: Product, web: Web) -> None:
    """No file is made, only that token is taken, and no agent sees it."""
    alone.configure(service={"port": 0, "tokenEnv": "OWN_API_TOKEN"})
    alone.serve(env={"OWN_API_TOKEN": "token-of-the-operator"}).wait_swept()

    taken = web.get("/metrics", {"Authorization": "Bearer token-of-the-operator"})

    assert taken.status == 200
    assert not alone.paths.api_token.exists()
    [pane] = alone.panes().values()
    with open(f"/proc/{pane}/environ") as environ:
        assert "token-of-the-operator" not in environ.read()
    assert "token-of-the-operator" not in alone.tmux("show-environment", "-g")


def test_where_it_listens_is_in_status(alone: Product, web: Web) -> None:
    """With port 0 it names the real port; its socket is private and goes with the service."""
    service = alone.serve().wait_swept()

    row = http_row(alone)

    assert (row["running"], row["detail"]) == (True, web.url)
    assert alone.paths.http_socket.stat().st_mode & 0o777 == 0o600
    assert service.stop() == 0
    assert not alone.paths.http_socket.exists()


def over_socket(alone: Product, path: str, *headers: str) -> str:
    """Ask as docs/operations.md says, and return the status and the body."""
    given = [word for header in headers for word in ("-H", header)]
    url = ["--unix-socket", "http.sock", *given, f"http://localhost{path}"]
    words = ["curl", "-s", "-w", "%{http_code}", *url]
    return subprocess.run(words, cwd=alone.paths.local, capture_output=True, text=True, timeout=60, check=False).stdout


def test_the_socket_answers_as_the_port_does(alone: Product, web: Web) -> None:
    """With the token, under the name that curl gives; a foreign name and a missing token are refused there as well."""
    alone.serve().wait_swept()
    token = f"Authorization: Bearer {web.token}"

    assert over_socket(alone, "/metrics", token).endswith("200")
    assert over_socket(alone, "/health").endswith("200")
    assert over_socket(alone, "/metrics").endswith("401")
    assert over_socket(alone, "/metrics", token, "Host: evil.example").endswith("403")


def test_whoever_takes_the_port_of_a_killed_service_is_handed_no_token(alone: Product, web: Web) -> None:
    """Nothing in the state folder leads to the port; its socket reaches nobody, until the next service is there."""
    service = alone.serve().wait_swept()
    address, token = urlsplit(web.url), web.token
    service.kill()
    with socket.create_server((LOCAL, address.port or 0)) as thief:
        thief.settimeout(1)

        answered = over_socket(alone, "/metrics", f"Authorization: Bearer {token}")
        row = [row for row in alone.cli("status", "--json").json["services"] if row["name"] == "http"]

        assert answered.endswith("000")
        assert row == []
        assert not [file for file in alone.paths.local.glob("*") if file.is_file() and "127.0.0.1" in _text(file)]
        with pytest.raises(TimeoutError):
            thief.accept()
    alone.serve().wait_swept()
    wait_until(lambda: over_socket(alone, "/health").endswith("200"), "the next service answers there")


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")


def test_a_port_that_is_taken_stops_no_session(alone: Product) -> None:
    """The service goes on with its socket, and status names the port and the remedy."""
    with socket.create_server((LOCAL, 0)) as taken:
        port = taken.getsockname()[1]
        alone.configure(service={"port": port})
        service = alone.serve().wait_swept()
        wait_until(lambda: "service.port" in str(http_row(alone)["detail"]), "the trouble is told")
        row, status = http_row(alone), alone.cli("status", "--json")
        answered = over_socket(alone, "/health")

        code = service.stop()

    assert row["running"] is False
    assert f"{LOCAL}:{port}" in str(row["detail"])
    assert answered.endswith("200")
    assert status.code == 1
    assert [session["live"] for session in status.json["standingSessions"]] == ["live"]
    assert code == 0


def test_without_a_port_there_is_only_the_socket(alone: Product) -> None:
    """No TCP connection can be made; status shows the socket, and all of it answers there."""
    alone.configure(service={})
    service = alone.serve().wait_swept()
    token = f"Authorization: Bearer {alone.paths.api_token.read_text().strip()}"

    row = http_row(alone)

    assert (row["running"], row["detail"]) == (True, str(alone.paths.http_socket))
    assert over_socket(alone, "/health").endswith("200")
    assert over_socket(alone, "/api/v1/status", token).endswith("200")
    assert over_socket(alone, "/api/v1/status", token, "Host: evil.example").endswith("403")
    assert _listening(service.pid) == []


def _listening(pid: int) -> list[str]:
    """Return the TCP addresses at which a process listens."""
    import psutil

    found = psutil.Process(pid).net_connections("tcp")
    return [str(one.laddr) for one in found if one.status == psutil.CONN_LISTEN]


def test_a_token_that_others_may_read_is_not_served_with(alone: Product) -> None:
    """Neither opened nor replaced: the row says which file, and the sessions run."""
    alone.paths.local.mkdir(parents=True, mode=0o700)
    alone.paths.api_token.write_text("seen-by-all\n")
    alone.paths.api_token.chmod(0o644)
    alone.serve().wait_swept()

    wait_until(lambda: str(alone.paths.api_token) in str(http_row(alone)["detail"]), "the file is named")

    assert http_row(alone)["running"] is False
    assert not alone.paths.http_socket.exists()


def test_listening_on_every_address_is_warned_of(alone: Product, web: Web) -> None:
    """It works, and the row says what that means."""
    alone.configure(service={"host": "0.0.0.0", "port": 0})
    alone.serve().wait_swept()
    wait_until(lambda: web.get("/health").status == 200, "it answers")

    row = http_row(alone)

    assert row["running"] is True
    assert "not on this machine alone" in str(row["detail"])


def test_what_the_service_imports_holds_no_web_framework() -> None:
    """It is loaded by the first request: where nobody asks, nobody pays for it in memory or at the start."""
    code = "import sys, core.service.assembly; print(*{name.partition('.')[0] for name in sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert {"starlette", "h11", "uvicorn", "prometheus_client"}.isdisjoint(done.stdout.split())


def test_a_service_that_nobody_asked_ends_in_time(alone: Product, web: Web) -> None:
    """It listens, and lets go of the port; nothing of it has to be left behind."""
    service = alone.serve().wait_swept()
    port = int(web.url.rpartition(":")[2])

    code = service.stop()

    assert code == 0
    assert "did not stop in time" not in str(alone.events("service.stopped"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, port), 5).close()


def test_open_connections_do_not_hold_up_the_end(alone: Product, web: Web) -> None:
    """One that is idle, one that never finishes its request: the service ends all the same, and in time."""
    service = alone.serve().wait_swept()
    port = int(web.url.rpartition(":")[2])
    with socket.create_connection((LOCAL, port)) as idle, socket.create_connection((LOCAL, port)) as half:
        half.sendall(b"GET /health HTTP/1.1\r\nHo")
        assert web.get("/health").status == 200

        code = service.stop()

        assert code == 0
        assert idle.fileno() > 0
    assert "did not stop in time" not in str(alone.events("service.stopped"))
