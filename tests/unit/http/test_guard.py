"""Who passes the guard: by Host, Origin and token, in this order."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core.http.facts import allowed_hosts, is_loopback
from core.http.guard import Guard, TokenAuthenticator, principal_of
from core.http.principal import Principal

TOKEN = "a-token-of-tests"
GOOD = {"host": "127.0.0.1:4114", "authorization": f"Bearer {TOKEN}"}


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every request, as the application behind the guard."""
    await Response("in")(scope, receive, send)


def asked(
    headers: dict[str, str] | list[tuple[str, str]],
    path: str = "/metrics",
    host: str = "127.0.0.1",
    reached: str = "127.0.0.1",
    port: int = 4114,
) -> tuple[int, str]:
    """Return status and error code of the guard's answer; (200, "") for a request that may pass."""
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    scope: dict[str, Any] = {
        "type": "http",
        "path": path,
        "server": (reached, port),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
    }
    refused = Guard(inner, host=host, port=port, authenticators=[TokenAuthenticator(TOKEN, "http:ann")]).refused(scope)
    if refused is None:
        return 200, ""
    error = json.loads(bytes(refused.body))["error"]
    assert set(error) == {"code", "message", "remedy"}
    assert all(error.values())
    return refused.status_code, error["code"]


@pytest.mark.parametrize("host", ["127.0.0.1:4114", "localhost:4114", "LocalHost:4114", "[::1]:4114"])
def test_the_names_of_this_machine_with_our_port_are_ours(host: str) -> None:
    """By each of them a program on this machine may ask."""
    assert asked({**GOOD, "host": host}) == (200, "")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:4114",
        "127.0.0.1",
        "localhost:80",
        "127.0.0.1:4115",
        "127.0.0.1.evil.example:4114",
        "0.0.0.0:4114",
        "",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    """A name that somebody pointed at us (DNS rebinding) is not ours, nor is another port."""
    assert asked({**GOOD, "host": host}) == (403, "host_not_allowed")


def test_no_host_and_two_hosts_are_refused() -> None:
    """What cannot be told for certain is not ours."""
    assert asked([("authorization", f"Bearer {TOKEN}")]) == (403, "host_not_allowed")
    assert asked([*GOOD.items(), ("host", "evil.example")]) == (403, "host_not_allowed")


def test_the_configured_name_is_ours() -> None:
    """Who listens on a name of the machine is asked by that name."""
    assert asked({**GOOD, "host": "box.lan:4114"}, host="Box.lan") == (200, "")


def test_on_all_addresses_the_one_that_was_reached_is_ours() -> None:
    """An address, and no name, since any name could be pointed there; the wildcard itself is no address."""
    assert asked({**GOOD, "host": "192.0.2.7:4114"}, host="0.0.0.0", reached="192.0.2.7") == (200, "")
    assert asked({**GOOD, "host": "192.0.2.8:4114"}, host="0.0.0.0", reached="192.0.2.7")[0] == 403
    assert asked({**GOOD, "host": "0.0.0.0:4114"}, host="0.0.0.0", reached="192.0.2.7")[0] == 403


def test_a_narrow_host_does_not_widen_by_what_was_reached() -> None:
    """Only who listens on all addresses takes the reached one."""
    assert "192.0.2.7:4114" not in allowed_hosts("127.0.0.1", 4114, "192.0.2.7")


def test_the_port_may_be_left_out_only_where_http_leaves_it_out() -> None:
    """Clients do not send :80."""
    assert "localhost" in allowed_hosts("127.0.0.1", 80, None)
    assert "localhost" not in allowed_hosts("127.0.0.1", 4114, None)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:4114", "http://127.0.0.1:4115", "http://localhost:4114", ""],
)
def test_another_origin_is_refused_even_with_the_token(origin: str) -> None:
    """A page of another origin may not even send; another name of ours may be another program's page."""
    assert asked({**GOOD, "origin": origin}) == (403, "origin_not_allowed")
    assert asked({**GOOD, "origin": origin}, path="/health") == (403, "origin_not_allowed")


def test_our_own_origin_passes() -> None:
    """A page of the service itself is of the origin that the Host header names."""
    assert asked({**GOOD, "origin": "http://127.0.0.1:4114"}) == (200, "")


@pytest.mark.parametrize(
    "given_header", ["", "Bearer", "Bearer ", "Bearer a-token-of-test", f"Basic {TOKEN}", TOKEN, "Bearer ä"]
)
def test_without_the_token_nothing_but_health_is_answered(given_header: str) -> None:
    """Missing, wrong, shortened, of another scheme: all the same answer."""
    headers = {**GOOD, "authorization": given_header}

    assert asked(headers) == (401, "unauthorized")
    assert asked(headers, path="/nowhere") == (401, "unauthorized")
    assert asked(headers, path="/health/") == (401, "unauthorized")
    assert asked(headers, path="/health") == (200, "")


def test_the_scheme_is_written_in_any_case() -> None:
    """RFC 9110: the scheme is case-insensitive; the token is not."""
    assert asked({**GOOD, "authorization": f"bearer {TOKEN}"}) == (200, "")
    assert asked({**GOOD, "authorization": f"Bearer {TOKEN.upper()}"}) == (401, "unauthorized")


def test_two_tokens_are_none() -> None:
    """Nobody guesses which one was meant."""
    assert asked([*GOOD.items(), ("authorization", "Bearer other")]) == (401, "unauthorized")


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=60), st.text(max_size=20))
def test_no_header_breaks_the_guard(value: str, path: str) -> None:
    """Whatever bytes come, there is an answer, and it is no pass."""
    headers = [("host", value), ("origin", value), ("authorization", value)]

    assert asked(headers, path=path)[0] in (401, 403)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("LOCALHOST", True),
     ("0.0.0.0", False), ("::", False), ("192.0.2.7", False), ("box.lan", False)],
)  # fmt: skip
def test_what_is_this_machine_alone(host: str, expected: bool) -> None:
    """Everything else is warned of."""
    assert is_loopback(host) is expected


class Cookie:
    """Another way to show who asks."""

    def principal(self, scope: Scope) -> Principal | None:
        """Return alice for a request with her cookie."""
        return Principal("web:alice") if (b"cookie", b"session=alice") in scope["headers"] else None


@pytest.mark.parametrize(
    ("header", "actor"),
    [((b"authorization", f"Bearer {TOKEN}".encode()), "http:ann"), ((b"cookie", b"session=alice"), "web:alice")],
)
def test_whoever_asks_is_found_by_any_of_several_ways(header: tuple[bytes, bytes], actor: str) -> None:
    """The application learns who it is; a request that shows nobody by any of them is refused."""
    guard = Guard(inner, host="localhost", port=None, authenticators=[TokenAuthenticator(TOKEN, "http:ann"), Cookie()])
    scope: dict[str, Any] = {"type": "http", "path": "/metrics", "headers": [(b"host", b"localhost"), header]}
    stranger: dict[str, Any] = {"type": "http", "path": "/metrics", "headers": [(b"host", b"localhost")]}

    assert guard.refused(scope) is None
    assert principal_of(scope).actor == actor
    refused = guard.refused(stranger)
    assert refused is not None
    assert refused.status_code == 401
