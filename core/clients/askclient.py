"""Ask the service on its socket and wait for a person's answer. Standard library alone.

A copy of this file is in each session's folder. At a PermissionRequest the hook reporter replaces itself by it (`python
-I -S ask.py SOCKET INSTANCE KEY`, the hook's JSON on stdin); what it prints decides the harness's dialog. KEY is the
name of the hook's report, and anybody can read a file name, so the content of the file `nonce` beside this one is
appended to it. If it prints nothing and exits with 0, the dialog stays in the terminal: so it does without a service,
and whenever it is in doubt.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

TYPE_CHECKING = False  # the module of that name costs the hook ten milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

CONNECT_SECONDS = 5.0  # for a service that is there to say that it has heard
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0)
LONGEST_TEXTS = (20_000, 4_000, 400)  # characters of each text of an input that is too long; people are shown less
LONGEST_INPUT = 900_000  # of all of them; the service reads a line of 1 MiB
LONGEST_ANSWER = 1 << 24  # bytes
LONGEST_WAIT = 86_400.0 + 120  # seconds; nobody may configure more than a day
LONGEST_HOOK = 1 << 24  # bytes; what is cut there is no JSON any more, and the dialog stays in the terminal
LONGEST_RULES = 2_000  # characters of the rules that a harness offers to remember; people are shown all of them
QUESTION_TOOL = "AskUserQuestion"
NONCE = "nonce"  # the file's name


class Undecided(Exception):
    """Nobody answers: no service, no thread, or the time is up."""


def wait_for_answer(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the service's answer, a dict. Raises Undecided with the reason.

    A service that goes away while it is waited for is looked for again within the time that the first one had granted.
    """
    deadline: float | None = None
    attempt = 0
    while True:
        try:
            with _connected(path) as connection:
                connection.sendall(json.dumps(request).encode() + b"\n")
                lines = Lines(connection)
                first = lines.object(time.monotonic() + CONNECT_SECONDS)
                if "wait" not in first:
                    return _decided(first)
                attempt = 0
                until = time.monotonic() + granted(first)
                deadline = until if deadline is None else min(deadline, until)
                return _decided(lines.object(deadline + CONNECT_SECONDS))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            pause = RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]
            if deadline is None or time.monotonic() + pause >= deadline:
                raise Undecided(f"the service did not answer: {error}") from error
            attempt += 1
            time.sleep(pause)


def _decided(answer: dict[str, Any]) -> dict[str, Any]:
    found = answer.get("answer")
    if isinstance(found, dict):
        return found
    raise Undecided(str(answer.get("undecided") or answer.get("error") or "nobody answered"))


class Lines:
    """The lines that the other end says, each whole, of a bounded length, and in time.

    The same stands in toolbridge.py: each of the two is one file that runs alone in a session's folder.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._said = bytearray()

    def object(self, deadline: float) -> dict[str, Any]:
        """Return the next line as the object that it says. `deadline`: monotonic. Raises OSError, ValueError."""
        while b"\n" not in self._said:
            if len(self._said) > LONGEST_ANSWER:
                raise ValueError("its answer does not end")
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            more = self._connection.recv(65536)
            if not more:
                raise ValueError("it hung up")
            self._said += more
            if time.monotonic() >= deadline and b"\n" not in self._said:
                raise TimeoutError("it took too long")
        line, _, rest = bytes(self._said).partition(b"\n")
        self._said = bytearray(rest)
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("it said no object")
        return answer


def granted(first: dict[str, Any]) -> float:
    """Return how many seconds the answer may take. Raises ValueError, TypeError."""
    seconds = float(first["wait"])
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError("it says of no time how long it takes")
    return seconds


def _connected(path: str) -> socket.socket:
    """Return a connection; a path too long for the kernel's address goes through its folder (Linux)."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = None
    try:
        connection.settimeout(CONNECT_SECONDS)
        if len(os.fsencode(path)) > 100 and sys.platform.startswith("linux"):
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return connection


def sendable(value: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's input in a size that the service takes: whole, or else with the longest texts cut first."""
    if len(json.dumps(value)) <= LONGEST_INPUT:
        return value
    for limit in LONGEST_TEXTS:
        cut = _shortened(value, limit)
        if isinstance(cut, dict) and len(json.dumps(cut)) <= LONGEST_INPUT:
            return cut
    return {"input": _shortened(json.dumps(value), LONGEST_TEXTS[0])}


def request_of(payload: dict[str, Any], instance: str, key: str) -> dict[str, Any]:
    """Return what the service is asked for a hook's payload.

    Of an input that is cut it is told how many characters are missing, and a hash of all of it: two inputs that begin
    alike are two.
    """
    given = payload.get("tool_input") or {}
    sent = sendable(given)
    request = {
        "op": "request",
        "instance": instance,
        "key": key,
        "agent": payload.get("agent_id") or "main",
        "tool": payload.get("tool_name") or "",
        "input": sent,
    }
    if rules := rules_offered(payload):
        request["rules"] = rules
    if sent is not given:
        import hashlib  # costs three milliseconds

        whole = json.dumps(given, sort_keys=True)
        request |= {"missing": len(whole) - len(json.dumps(sent)), "whole": hashlib.sha256(whole.encode()).hexdigest()}
    return request


def rules_offered(payload: dict[str, Any]) -> list[Any]:
    """Return the rules by which the harness offers to allow what is asked from now on, [] where it offers none.

    `permission_suggestions` of Claude Code's PermissionRequest (2.1.197 to 2.1.332): its first `addRules` that allows.
    """
    for each in payload.get("permission_suggestions") or ():
        if isinstance(each, dict) and (each.get("type"), each.get("behavior")) == ("addRules", "allow"):
            rules = each.get("rules")
            return rules if isinstance(rules, list) and len(json.dumps(rules)) <= LONGEST_RULES else []
    return []


def _nonce() -> str:
    """Return what only this instance knows. Raises OSError."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), NONCE), encoding="ascii") as stream:
        return stream.read(200).strip()


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]}…"
    if isinstance(value, dict):
        return {str(key): _shortened(each, limit) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, limit) for each in value]
    return value


def hook_output(payload: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a PermissionRequest hook prints for the answer (Claude Code 2.1.197), None if it fits no dialog.

    What is to be remembered is remembered by the running program alone: no file of anybody's is changed.
    """
    if "answers" in answer:
        given = payload.get("tool_input")
        if payload.get("tool_name") != QUESTION_TOOL or not isinstance(given, dict):
            return None
        decision: dict[str, Any] = {"behavior": "allow", "updatedInput": {**given, "answers": answer["answers"]}}
    elif answer.get("allowed") is True:
        decision = {"behavior": "allow"}
        if answer.get("remember") is True and (rules := rules_offered(payload)):
            added = {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
            decision["updatedPermissions"] = [added]
    elif answer.get("allowed") is False:
        decision = {"behavior": "deny", "message": str(answer.get("message") or "denied by a person")}
    else:
        return None
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def main(words: Sequence[str]) -> int:
    """Ask for the hook whose JSON stands on standard input; 0 in every case."""
    path, instance, key = words
    try:
        payload = json.loads(sys.stdin.buffer.read(LONGEST_HOOK))
        request = request_of(payload, instance, f"{key}.{_nonce()}")
        output = hook_output(payload, wait_for_answer(path, request))
    except (Undecided, OSError, ValueError, AttributeError, TypeError, RecursionError):
        return 0
    if output is not None:
        sys.stdout.write(json.dumps(output) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
