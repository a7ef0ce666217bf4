"""The page's routes on a real service: logging in by a link, the conversation, a live screen, and keys."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.integration.http.conftest import Answered, Web
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until
from tests.support.web import AtSocket


@pytest.fixture(scope="module")
def running(served: Web) -> Product:
    """The product that all of these tests ask."""
    return served.product


def new_key(running: Product) -> str:
    """Return the key of a new link, as the command prints it."""
    url: str = running.cli("page", "--json").json["url"]
    return url.partition("#login=")[2]


def logged_in(web: Web) -> dict[str, str]:
    """Return the headers of a browser that came by a new link."""
    answered = login(web, new_key(web.product))
    assert answered.status == 200, answered.text
    cookie = answered.headers["set-cookie"].partition(";")[0]
    return {"Cookie": cookie, "X-The-Loop-Key": answered.json["key"]}


def login(web: Web, key: str) -> Answered:
    """Send the key of a link."""
    return web.post("/page/login", json.dumps({"key": key}).encode(), {"Content-Type": "application/json"})


def posted(web: Web, path: str, headers: dict[str, str], **body: object) -> Answered:
    """Post a JSON object."""
    return web.post(path, json.dumps(body).encode(), {**headers, "Content-Type": "application/json"})


def test_a_link_logs_one_browser_in(served: Web) -> None:
    """The cookie is out of every script's reach and is sent to no other site; the second use is refused."""
    key = new_key(served.product)
    first, second = login(served, key), login(served, key)
    cookie = first.headers["set-cookie"].lower()

    assert (first.status, second.status) == (200, 409)
    assert second.json["error"]["code"] == "link_used"
    assert "the-loop" in second.json["error"]["remedy"]
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/", "max-age="))
    assert served.product.events("page.logged_in")[-1]["actor"].startswith("page:")
    log = served.product.paths.events.read_text()
    assert key not in log
    assert first.json["key"] not in log


def test_the_page_and_its_files_say_how_they_may_be_used(served: Web) -> None:
    """Strict headers on each; a file that did not change is not sent again."""
    shell, module = served.get("/"), served.get("/page/vendor/xterm.mjs")
    again = served.get("/page/app.js", {"If-None-Match": served.get("/page/app.js").headers["etag"]})

    assert (shell.status, module.status, again.status) == (200, 200, 304)
    for answered in (shell, module):
        assert answered.headers["content-security-policy"].startswith("default-src 'none'")
        assert answered.headers["x-frame-options"] == "DENY"
        assert answered.headers["x-content-type-options"] == "nosniff"
    assert module.headers["content-type"].startswith("text/javascript")
    assert served.get("/page/../../../../etc/passwd").status in (401, 404)


def test_a_browser_may_what_the_operator_may_until_it_is_logged_out(served: Web) -> None:
    """The API is open to it; after `--log-out` nothing is, and the list of who is logged in is gone."""
    headers = logged_in(served)
    rows = served.get("/api/v1/standing-sessions", headers)
    said = served.product.cli("page", "--log-out")
    after = served.get("/api/v1/standing-sessions", headers)

    assert [row["name"] for row in rows.json["sessions"]] == [NAME]
    assert said.code == 0
    assert "logged out" in said.out
    assert after.status == 401
    assert not served.product.paths.page_logins.exists()


def test_one_browser_logs_itself_out(served: Web) -> None:
    """The other one stays logged in."""
    one, other = logged_in(served), logged_in(served)

    assert posted(served, "/page/logout", one).status == 200
    assert served.get("/api/v1/standing-sessions", one).status == 401
    assert served.get("/api/v1/standing-sessions", other).status == 200


def test_a_page_of_another_origin_can_do_nothing(served: Web) -> None:
    """Though the browser sends the cookie along, as it does from another port of this host."""
    headers = {**logged_in(served), "Origin": "http://127.0.0.1:9"}

    assert posted(served, "/api/v1/standing-sessions/stop", headers, name=NAME).status == 403
    assert posted(served, "/page/keys", headers, name=NAME, instance="i-1", data="x").status == 403


def test_what_was_said_is_a_conversation(served: Web) -> None:
    """A message that was said over the API stands there with who said it, and how far it came."""
    headers = logged_in(served)
    posted(served, "/api/v1/standing-sessions/say", headers, name=NAME, text="hello there", wait=20)

    told = served.get(f"/api/v1/standing-sessions/conversation?name={NAME}", headers).json
    entry = told["entries"][-1]

    assert (entry["text"], entry["to"], entry["kind"]) == ("hello there", True, "say")
    assert entry["actor"].startswith("page:")
    assert served.get("/api/v1/standing-sessions/conversation?name=nobody", headers).status == 404


@contextmanager
def watched(web: Web, headers: dict[str, str], name: str = NAME) -> Iterator[http.client.HTTPResponse]:
    """Give the stream of a screen."""
    parts = urlsplit(web.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        connection.request("GET", f"/page/screen?name={name}", headers=headers)
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_screen_is_looked_at_while_somebody_watches(served: Web, running: Product) -> None:
    """The first look comes at once, keys that are sent show in a later one, and the pane keeps its size."""
    headers = logged_in(served)
    with watched(served, headers) as stream:
        first = json.loads(stream.readline())
        typed = posted(served, "/page/keys", headers, name=NAME, instance=first["instance"], data="half a messäge")
        seen = first
        while "half a messäge" not in seen["text"]:
            seen = json.loads(stream.readline() or b"null")
    size = running.tmux("display-message", "-p", "-t", f"=loop-standing-{NAME}:", "#{pane_width} #{pane_height}")

    assert typed.status == 200
    assert [str(first["columns"]), str(first["rows"])] == size.split()
    assert running.events("page.typed")[-1]["name"] == NAME
    posted(served, "/page/keys", headers, name=NAME, instance=first["instance"], data="\x15")
    wait_until(lambda: "half a mess" not in running.screen(), "the line is empty again")


def test_keys_are_for_the_terminal_that_is_seen(served: Web, running: Product) -> None:
    """Those for an instance that is not there any more are typed nowhere, and it is said."""
    headers = logged_in(served)

    refused = posted(served, "/page/keys", headers, name=NAME, instance="i-of-yesterday", data="rm -rf x")

    assert refused.status == 409
    assert "rm -rf" not in running.screen()
    assert posted(served, "/page/keys", headers, name=NAME, instance="i", data="").status == 400
    assert posted(served, "/page/keys", headers, name=NAME).status == 400


def test_an_unknown_session_has_no_screen(served: Web) -> None:
    """It is told before the stream begins."""
    with watched(served, logged_in(served), "nobody") as stream:
        assert stream.status == 404


def test_without_a_port_a_forwarded_socket_serves_it(alone: Product) -> None:
    """The link is for the other end of `ssh -L`, whose browser names a port of its own in Host and Origin."""
    alone.configure(service={})
    alone.serve()
    told = alone.cli("page", "--json").json
    key = told["elsewhere"]["url"].partition("#login=")[2]
    connection = AtSocket(alone.paths.http_socket)
    host = {"Host": "localhost:4114", "Origin": "http://localhost:4114"}

    connection.request("POST", "/page/login", json.dumps({"key": key}), {**host, "Content-Type": "application/json"})
    answer = connection.getresponse()
    own = json.loads(answer.read())["key"]
    cookie = (answer.headers["set-cookie"] or "").partition(";")[0]
    connection.request("GET", "/api/v1/standing-sessions", headers={**host, "Cookie": cookie, "X-The-Loop-Key": own})
    rows = json.loads(connection.getresponse().read())
    connection.close()

    assert told["url"] is None
    assert str(alone.paths.http_socket) in told["elsewhere"]["command"]
    assert cookie.startswith("the_loop_4114=")
    assert [row["name"] for row in rows["sessions"]] == [NAME]


def test_without_a_service_the_command_says_what_to_do(alone: Product) -> None:
    """No link that would open nothing; logging out works all the same."""
    refused, ended = alone.cli("page", "--json"), alone.cli("page", "--log-out", "--json")

    assert refused.code == 1
    assert refused.json["error"]["code"] == "no_service"
    assert "start" in refused.json["error"]["remedy"]
    assert (ended.code, ended.json) == (0, {"ended": 0})


def test_an_agent_is_given_no_link(served: Web, running: Product) -> None:
    """The page can do everything, which an agent may not."""
    refused = running.cli("page", env={"THE_LOOP_INSTANCE": running.record()["instanceId"]})

    assert refused.code == 1
    assert "open the page" in refused.err
