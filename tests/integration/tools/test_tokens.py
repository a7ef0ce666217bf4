"""Who is let in: the agent of a session that runs, by its present token, and nobody else."""

import json
from urllib.parse import urlsplit

import pytest

from core.process.control import _address
from tests.integration.http.conftest import Answered
from tests.integration.tools.conftest import OTHER, Desk, called, error_of
from tests.support.product import NAME
from tests.support.tmux import wait_until
from tests.support.trees import contents

LIST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_standing_sessions", "arguments": {}},
}


def asked(desk: Desk, token: str | None, **headers: str) -> Answered:
    """Call a tool over HTTP with this token."""
    given = {"Authorization": f"Bearer {token}"} if token is not None else {}
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return desk.web.post("/mcp", json.dumps(LIST).encode(), {**given, **kinds, **headers})


def asked_by_socket(desk: Desk, token: str) -> str:
    """Call a tool over the service's socket, and return the code of its refusal, "" where it was done."""
    import socket

    line = {"op": "tool", "token": token, "call": "12345678", "name": "list_standing_sessions", "arguments": {}}
    with socket.socket(socket.AF_UNIX) as connection, _address(desk.product.paths.service_socket) as address:
        connection.settimeout(10)
        connection.connect(address)
        connection.sendall(json.dumps(line).encode() + b"\n")
        with connection.makefile("rb") as stream:
            answers = [json.loads(line) for line in stream]
    [result] = [answer["result"] for answer in answers if "result" in answer]
    return str(result["structuredContent"]["error"]["code"]) if result["isError"] else ""


def refused(desk: Desk, token: str) -> bool:
    """Return whether neither door opens to the token."""
    over_http, over_socket = asked(desk, token), asked_by_socket(desk, token)
    assert (over_http.status == 401) == (over_socket == "unauthorized"), (over_http, over_socket)
    if over_http.status == 401:
        assert over_http.json["error"].keys() == {"code", "message", "remedy"}
        assert token == "" or token not in over_http.text
    return over_http.status == 401


def test_the_present_token_opens(shared: Desk) -> None:
    """That of the session's folder, which is the owner's alone."""
    assert not refused(shared, shared.token())
    assert (shared.folder() / "mcp-token").stat().st_mode & 0o777 == 0o600


def test_no_other_word_opens(shared: Desk) -> None:
    """Neither nothing, nor the operator's token, nor a part of the right one, nor two halves of two."""
    mine, theirs = shared.token(), shared.token(OTHER)
    owner, generation, secret = mine.split(".", 2)

    wrong = ["", shared.web.token, secret, owner, f"{owner}.{generation}.", mine[:-1], f"{owner}.9.{secret}"]
    assert [token for token in wrong if not refused(shared, token)] == []
    assert refused(shared, f"{owner}.{generation}.{theirs.split('.', 2)[2]}")
    assert asked(shared, None).status == 401


def test_an_agents_token_opens_nothing_else(shared: Desk) -> None:
    """What is the operator's is asked with the operator's."""
    answered = shared.web.get("/metrics", {"Authorization": f"Bearer {shared.token()}"})

    assert (answered.status, answered.json["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [("Host", "evil.example:4114", "host_not_allowed"), ("Origin", "http://evil.example", "origin_not_allowed")],
)
def test_a_page_in_a_browser_is_kept_out_before_its_token_is_looked_at(
    shared: Desk, header: str, value: str, code: str
) -> None:
    """A name that was pointed at this machine, and a page of another origin, get 403."""
    answered = asked(shared, shared.token(), **{header: value})

    assert (answered.status, answered.json["error"]["code"]) == (403, code)


def test_a_restart_makes_the_token_void(desk: Desk) -> None:
    """The next instance has a new one; whoever kept the old one is nobody."""
    before = desk.token()
    desk.product.cli("standing", "restart", NAME)

    assert desk.token() != before
    assert refused(desk, before)
    assert not refused(desk, desk.token())


def test_a_stop_makes_the_token_void(desk: Desk) -> None:
    """Its file is gone, and the token opens nothing, even where somebody puts the file back."""
    before, path = desk.token(), desk.folder() / "mcp-token"
    desk.product.cli("standing", "stop", NAME)

    assert not path.exists()
    assert refused(desk, before)
    path.touch(0o600)
    path.write_text(before)
    assert refused(desk, before)


def test_a_delete_makes_the_token_void(both: Desk) -> None:
    """Nothing of it is left."""
    before = both.token(OTHER)
    assert both.product.cli("standing", "delete", OTHER).code == 0

    assert refused(both, before)


def test_a_token_file_that_others_may_read_is_not_used(desk: Desk) -> None:
    """Whoever opened it to others is told how to mend it."""
    (desk.folder() / "mcp-token").chmod(0o644)

    answered = asked(desk, desk.token())

    assert (answered.status, answered.json["error"]["code"]) == (503, "store_broken")
    assert "others may read" in answered.json["error"]["message"]


async def test_a_door_keeps_the_token_that_it_began_with(desk: Desk) -> None:
    """A program that outlives its instance does not become the next one's."""
    async with desk.stdio() as session:
        before = await called(session, "list_standing_sessions")
        desk.product.cli("standing", "restart", NAME)
        after = await called(session, "list_standing_sessions")

    assert (error_of(before), error_of(after)) == ("", "unauthorized")


def test_the_token_is_nowhere_but_in_its_file(desk: Desk) -> None:
    """No other file, argument or environment holds it, after it was used on both doors."""
    token = desk.token()
    assert not refused(desk, token)
    refused(desk, token[:-1])

    from pathlib import Path

    secret = token.split(".", 2)[2].encode()
    places = contents(desk.product.paths.root)
    [pid] = desk.product.panes().values()
    places["environment"] = Path(f"/proc/{pid}/environ").read_bytes()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            places[str(process)] = process.read_bytes()
        except OSError:
            continue
    assert [place for place, text in places.items() if secret in text] == [str(desk.folder() / "mcp-token")]


def test_a_body_without_end_is_refused(shared: Desk) -> None:
    """More than a megabyte is not read, and what is no JSON is told so; the next call works."""
    headers = {"Authorization": f"Bearer {shared.token()}", "Content-Type": "application/json", "Accept": "*/*"}

    huge = shared.web.post("/mcp", b" " * 1_200_000, headers)
    broken = shared.web.post("/mcp", b"{", headers)

    assert (huge.status, broken.status) == (413, 400)
    assert not refused(shared, shared.token())


def test_only_post_is_served(shared: Desk) -> None:
    """There is no stream to open and no session to end: nothing is kept between requests."""
    answers = [
        shared.web.get("/mcp", {"Authorization": f"Bearer {shared.token()}"}, method) for method in ("GET", "DELETE")
    ]

    assert [answer.status for answer in answers] == [405, 405]
    assert urlsplit(shared.web.url).hostname == "127.0.0.1"
    wait_until(lambda: not refused(shared, shared.token()), "the door is open still")
