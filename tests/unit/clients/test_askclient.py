"""The client that a hook becomes: what it prints, and that it gives up rather than guess."""

import contextlib
import io
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.clients import askclient
from core.clients.askclient import NONCE, Undecided, hook_output, request_of, sendable, wait_for_answer
from tests.support.hangups import hanging_up

Script = Callable[[socket.socket, dict[str, Any]], None]


@contextmanager
def service(path: Path, *scripts: Script) -> Iterator[list[dict[str, Any]]]:
    """Answer one connection after another as told; the requests are collected."""
    heard: list[dict[str, Any]] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    server.settimeout(10)

    def serve() -> None:
        for script in scripts:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                heard.append(json.loads(stream.readline()))
                script(connection, heard[-1])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield heard
    finally:
        thread.join(10)
        server.close()


def say(*lines: dict[str, Any]) -> Script:
    """Return a script that says these lines and hangs up."""
    return lambda connection, _: connection.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_the_answer_is_returned(short_path: Path) -> None:
    """First how long it may take, then the answer."""
    with service(short_path / "s", say({"wait": 5}, {"answer": {"allowed": True}})):
        assert wait_for_answer(str(short_path / "s"), {"op": "request"}) == {"allowed": True}


def test_a_service_that_goes_away_is_asked_again(short_path: Path) -> None:
    """Under the same key, within the time that was granted."""
    with service(short_path / "s", say({"wait": 5}), say({"answer": {"allowed": False}})) as heard:
        answer = wait_for_answer(str(short_path / "s"), {"op": "request", "key": "k"})

    assert answer == {"allowed": False}
    assert [request["key"] for request in heard] == ["k", "k"]


@pytest.mark.parametrize("line", [{"undecided": "no thread"}, {"error": "unknown operation"}, {"wait": 0.1}])
def test_without_an_answer_nothing_is_decided(short_path: Path, line: dict[str, Any]) -> None:
    """The dialog stays in the terminal."""
    with service(short_path / "s", say(line)), pytest.raises(Undecided):
        wait_for_answer(str(short_path / "s"), {"op": "request"})


def test_no_service_is_undecided_at_once(tmp_path: Path) -> None:
    """Nothing is waited for that was never there."""
    with pytest.raises(Undecided):
        wait_for_answer(str(tmp_path / "s"), {"op": "request"})


def test_a_long_path_is_reached(tmp_path: Path, short_path: Path) -> None:
    """The kernel's address holds 108 bytes, a state root may need more."""
    folder = tmp_path / ("d" * 60) / ("e" * 60)
    folder.mkdir(parents=True)
    short = short_path / "s"
    with service(short, say({"answer": {"allowed": True}})):
        (folder / "service.sock").symlink_to(short)
        assert wait_for_answer(str(folder / "service.sock"), {"op": "request"}) == {"allowed": True}


@pytest.mark.parametrize(
    ("tool", "answer", "decision"),
    [
        ("Bash", {"allowed": True}, {"behavior": "allow"}),
        ("Bash", {"allowed": False, "message": "no"}, {"behavior": "deny", "message": "no"}),
        ("Bash", {"answers": {"a?": "b"}}, None),
        ("Bash", {}, None),
        ("Bash", {"allowed": "yes"}, None),
        (
            "AskUserQuestion",
            {"answers": {"a?": "b"}},
            {"behavior": "allow", "updatedInput": {"questions": [1], "answers": {"a?": "b"}}},
        ),
    ],
)
def test_what_is_printed_is_what_was_decided(tool: str, answer: dict[str, Any], decision: object) -> None:
    """An answer that fits no dialog is none."""
    payload = {"tool_name": tool, "tool_input": {"questions": [1]}}

    output = hook_output(payload, answer)

    assert output == (
        None
        if decision is None
        else {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    )


@pytest.mark.parametrize(
    "value", [{"content": "x" * 10**7}, {f"k{n}": "y" * 30_000 for n in range(200)}, {"a": [1, 2]}]
)
def test_what_is_sent_fits_the_service(value: dict[str, Any]) -> None:
    """The longest texts are cut first; small inputs are sent whole."""
    sent = sendable(value)

    assert len(json.dumps(sent)) < 1 << 20
    assert sent == value or len(json.dumps(value)) > askclient.LONGEST_TEXTS[-1]


def test_what_is_cut_to_be_sent_says_so() -> None:
    """Nobody is to approve the beginning of a command that they take to be all of it."""
    given = {"command": "c" * 500, **{f"k{n}": "y" * 5_000 for n in range(300)}}

    sent = sendable(given)

    assert sent["command"] == "c" * 400 + "…"


def test_of_what_is_cut_the_service_learns_that_and_a_hash_of_all_of_it() -> None:
    """Two inputs that begin alike are two, and people are told how much they do not see."""
    one, other, short = ({"command": "c" * length} for length in (1_000_000, 1_000_001, 3))

    first, second, whole = (request_of({"tool_input": given}, "i", "k.n") for given in (one, other, short))

    assert first["input"] == second["input"] == {"command": "c" * 20_000 + "…"}
    assert first["whole"] != second["whole"]
    assert 979_000 < first["missing"] < second["missing"] < 981_000
    assert (whole["input"], "missing" in whole, "whole" in whole) == (short, False, False)


def test_the_key_ends_in_what_only_the_instance_knows(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is read beside the client, for arguments and names of files are there for everybody to read."""
    (short_path / NONCE).write_text("n0nce\n")
    monkeypatch.setattr(askclient, "__file__", str(short_path / "ask.py"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"tool_name": "Bash", "tool_input": {"a": 1}}')))

    with service(short_path / "s", say({"answer": {"allowed": True}})) as heard:
        askclient.main([str(short_path / "s"), "i-1", "17-PermissionRequest"])

    assert [request["key"] for request in heard] == ["17-PermissionRequest.n0nce"]
    assert '"allow"' in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", "{", '{"tool_input": 5}', "\udcff"])
def test_a_broken_payload_decides_nothing(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It exits with 0 and says nothing."""
    raw = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogateescape")))
    monkeypatch.setattr(sys, "stdin", raw)

    assert askclient.main([str(tmp_path / "s"), "i-1", "k"]) == 0


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), 1e12, -1, "long"])
def test_a_time_that_is_none_is_not_waited_for(short_path: Path, wait: object) -> None:
    """The dialog stays in the terminal, at once."""
    with service(short_path / "s", say({"wait": wait})), pytest.raises(Undecided):
        wait_for_answer(str(short_path / "s"), {"op": "request"})


def test_a_service_that_hangs_up_again_and_again_is_left_once_the_first_time_is_over(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long each of them grants: the harness waits no longer than it was told at first."""
    monkeypatch.setattr(askclient, "RETRY_SECONDS", (0.01,))
    with hanging_up(short_path / "s", {"wait": 0.3}, {"wait": 60}) as heard, pytest.raises(Undecided):
        wait_for_answer(str(short_path / "s"), {"op": "request"})

    assert len(heard) > 1


def test_an_answer_that_comes_letter_by_letter_is_waited_for_no_longer(short_path: Path) -> None:
    """Each letter alone would be in time."""
    ended = threading.Event()

    def dribble(connection: socket.socket, _: dict[str, Any]) -> None:
        connection.sendall(b'{"wait": 0.2}\n')
        while not ended.wait(0.05):
            connection.sendall(b" ")

    with pytest.MonkeyPatch.context() as patch, service(short_path / "s", dribble):
        patch.setattr(askclient, "CONNECT_SECONDS", 0.3)
        try:
            with pytest.raises(Undecided, match="did not answer"):
                wait_for_answer(str(short_path / "s"), {"op": "request"})
        finally:
            ended.set()


def test_an_answer_without_an_end_is_not_kept(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length is bounded before it is read."""
    monkeypatch.setattr(askclient, "LONGEST_ANSWER", 1000)

    def flood(connection: socket.socket, _: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b" " * 4_000_000)

    with service(short_path / "s", flood), pytest.raises(Undecided, match="does not end"):
        wait_for_answer(str(short_path / "s"), {"op": "request"})


RULES = [{"toolName": "Bash", "ruleContent": "curl:*"}]
SUGGESTED: list[dict[str, Any]] = [
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    {"type": "addRules", "rules": RULES, "behavior": "allow", "destination": "localSettings"},
]


def test_what_is_remembered_is_what_the_harness_offered_for_as_long_as_it_runs() -> None:
    """No settings file of anybody's is changed. What nobody asked to remember is not."""
    payload = {"tool_name": "Bash", "tool_input": {"command": "curl x"}, "permission_suggestions": SUGGESTED}
    remembered = hook_output(payload, {"allowed": True, "remember": True})
    allowed = hook_output(payload, {"allowed": True})
    denied = hook_output(payload, {"allowed": False, "remember": True})

    assert request_of(payload, "i-1", "k")["rules"] == RULES
    assert remembered is not None
    added = {"type": "addRules", "rules": RULES, "behavior": "allow", "destination": "session"}
    assert remembered["hookSpecificOutput"]["decision"] == {"behavior": "allow", "updatedPermissions": [added]}
    assert "updatedPermissions" not in json.dumps([allowed, denied])


@pytest.mark.parametrize(
    "suggested",
    [
        None,
        "all",
        [SUGGESTED[0]],
        [{**SUGGESTED[1], "behavior": "deny"}],
        [{**SUGGESTED[1], "rules": "all"}],
        [{**SUGGESTED[1], "rules": [{"toolName": "Bash", "ruleContent": "x" * 3_000}]}],
    ],
)
def test_where_nothing_is_offered_nothing_is_remembered(suggested: object) -> None:
    """A program without such rules, or with others, gets a plain Allow."""
    payload = {"tool_name": "Bash", "tool_input": {"command": "curl x"}, "permission_suggestions": suggested}

    output = hook_output(payload, {"allowed": True, "remember": True})

    assert "rules" not in request_of(payload, "i-1", "k")
    assert output is not None
    assert output["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
