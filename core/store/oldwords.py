"""The sentences that older databases hold in place of codes, and the codes that they became. Never edited.

Read once, by the migration that replaces them. Texts of today are in `core.model.texts`.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

#: sentences without arguments
WORDS = {
    "it is being deleted": "deleting",
    "it was stopped": "stopped",
    "it crashed too often, or could not be brought back, and is held as failed": "failed",
    "it was never started": "never-run",
    "it is not running": "down",
    "it is still starting": "starting",
    "it is idle": "idle",
    "a turn is running": "busy",
    "its agent asks for a permission, and what is typed now could answer that": "permission",
    "it waits for the answer to its question": "question",
    "its program shows a dialog, and what is typed now would answer that": "dialog",
    "nobody can tell what it does": "unknown",
    "its program has ended": "dead",
    "its pane is gone": "lost",
    "tmux does not answer": "silent",
    "a tmux session of that name, which is not ours, is in its place": "foreign",
    "somebody is typing in its terminal": "typing",
    "somebody has half-typed text in its terminal": "half-typed",
    "half-typed text is being put aside": "stashing",
    "its input line is being emptied": "clearing",
    "a tool call may open a dialog": "tool-call",
    "its files are being fetched": "fetching",
    "only the service can ask whether its author may still steer": "needs-service",
    "its terminal shows something in the place of its input line": "no-input-line",
    "the message before it may still stand in its input line": "in-doubt",
    "its pane's input is switched off": "input-closed",
    "its pane ended, and the conversation does not know it": "pane-ended",
    "it was taken back from its harness's own queue": "taken-back",
    "its harness ended with the text in its queue": "harness-ended",
    "it was held back in the harness's own queue": "held-back",
    "the session was stopped or deleted after it was sent": "outlived",
    "the session was deleted": "deleted",
    "its author is no longer on the allow-list": "not-authorized",
    "its author deleted it": "author-deleted",
    "a fresh start gave a new one": "new-boot",
    "given to the program as its argument": "argument",
    "this harness cannot prove more": "unproven",
    "its model got it marked as pasted from somewhere else, and may not take it for its sender's own words":
        "as-pasted",
    "it answered the session's question": "answered",
    "it was the program's argument": "by-argument",
    "a second Enter changed nothing": "second-enter",
    "half-typed text was put aside for it": "stashed-for-it",
    "somebody typed since": "typed-since",
    "its pane ended before anything showed that a turn took it": "pane-ended-unshown",
    "its harness had received it and is idle, and its records do not show that a turn took it": "not-taken",
    "it was taken back from its harness's own queue into the input line of its terminal": "at-terminal",
    "the harness told it by itself": "told-by-itself",
    "the harness repeats a notice that was delivered before": "repeated",
    "the harness tells at its resume of a task that ended with an earlier run": "left-over",
    "recorded: the harness brings it again when it is resumed": "recorded",
    "its run is over": "run-over",
    "the session was stopped after it was due": "overtaken",
    "its loop was stopped": "loop-stopped",
    "its loop is complete": "loop-completed",
    "its loop has expired": "loop-expired",
    "its loop was paused": "loop-paused",
    "it was left, or ended by itself": "left-by-person",
}  # fmt: skip
#: sentences with arguments; `why` is a sentence itself
PATTERNS = [
    (re.compile(pattern, re.DOTALL), code)
    for pattern, code in (
        (r"it is paused(?:, (?P<ahead_>\d+) ahead)?", "paused"),
        (r"its input line is in (?P<mode>.+)", "in-mode"),
        (r"it waits to be confirmed(?:, for it was )?(?P<late>.*)", "confirm"),
        (r"confirmed by (?P<actor>.+)", "confirmed-by"),
        (
            r"the service runs with the configuration of (?P<since>\d\d:\d\d) UTC, and (?P<error>.+);"
            r" `the-loop restart` takes the file's over",
            "old-configuration",
        ),
        (r"it waited too long: (?P<why>.+)", "waited-too-long"),
        (r"its queue is full(?: \(limits\.queuedPerSession is (?P<limit_>\d+)\).*)?", "queue-full"),
        (r"the session was stopped; start it: `the-loop standing start (?P<name>[^`]+)`", "queue-cancelled"),
        (r"cancelled by (?P<actor>.+)", "cancelled-by"),
        (r"nothing shows that a turn took it, and (?P<why>.+)", "not-shown"),
        (r"no second Enter was sent, for (?P<why>.+)", "no-enter"),
        (
            r"(?P<waiting_>\d+) messages wait already, and limits\.queuedPerSession is (?P<limit_>\d+)",
            "too-many-wait",
        ),
        (r"its loop is held: (?P<held>[a-z-]+)", "loop-held"),
        (r"its loop is (?P<status>[a-z]+)", "loop-is"),
        (r"its loop has ended: (?P<why>.+)", "loop-ended"),
    )
]
_LOOPS_OWN = "loop-ended"  #: whose `why` is no reason of a message's


def into_codes(connection: sqlite3.Connection) -> None:
    """Turn the sentences of the messages, and of the notes about them, into codes. Part of the open transaction."""
    connection.create_function("code_of", 1, lambda words: code_of(words)[0], deterministic=True)
    connection.create_function("given_of", 1, lambda words: code_of(words)[1], deterministic=True)
    for table in ("inbox", "note_waits"):
        connection.execute(
            f"UPDATE {table} SET reason = code_of(reason), reason_args = given_of(reason) WHERE reason <> ''"
        )
    for name in ("code_of", "given_of"):
        connection.create_function(name, 1, None)


def code_of(words: str) -> tuple[str, str]:
    """Return the code and the arguments, as JSON, of a sentence; of one that nobody knows `said` with it."""
    code, args = _coded(words)
    return code, json.dumps(args, ensure_ascii=False, sort_keys=True) if args else "{}"


def _coded(words: str) -> tuple[str, dict[str, Any]]:
    if not words:
        return "", {}
    if words in WORDS:
        return WORDS[words], {}
    for pattern, code in PATTERNS:
        if found := pattern.fullmatch(words):
            return code, dict(_arguments(code, found))
    return "said", {"words": words}


def _arguments(code: str, found: re.Match[str]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments; the name of a number ends with `_`, and where it is missing it is 0."""
    for name, value in found.groupdict().items():
        if name.endswith("_"):
            yield name[:-1], int(value or 0)
        elif name == "why" and code != _LOOPS_OWN:
            inner, args = _coded(value)
            yield name, {"args": args, "reason": inner}
        else:
            yield name, value


_ATTACH = r"look at its terminal, `the-loop standing attach (?P<name>\S+) --write`"
_LISTED = r"; `/hooks` lists them there"
#: why a session's hooks were silent; everything else is its harness's own words about its settings
SILENCES = [
    (re.compile(pattern, re.DOTALL), code)
    for pattern, code in (
        (r"its folder (?P<folder>.+) is gone, and no hook can start there: make the folder again", "folder-gone"),
        (
            r"(?P<path>.+), which its hooks run, is not there:"
            r" `the-loop standing restart (?P<name>\S+)` writes it again",
            "reporter-gone",
        ),
        (rf"its hooks cannot run \((?P<trouble>.+)\): {_ATTACH}", "hooks-fail"),
        (rf"its program runs, and its hooks have not said so: {_ATTACH}{_LISTED}", "start-untold"),
        (
            r"its hooks have not said that it reads, and no other source tells within (?P<seconds>\S+) s:"
            rf" {_ATTACH}{_LISTED}",
            "reading-untold",
        ),
        (rf"its hooks told nothing of the end of a turn: {_ATTACH}{_LISTED}", "end-untold"),
        (r"(?P<words>.*)", "hooks-off"),
    )
]


def silences_into_codes(connection: sqlite3.Connection) -> None:
    """Turn into codes why hooks were silent, and what was tried again; the notes of the former name them.

    A note's key was `silent:<instance>:<hash of the sentence>`, and behind that of an edit stood its time.
    """
    found = connection.execute("SELECT uid, instance, silent_why, retrying FROM activities").fetchall()
    for uid, instance, silent, retrying in found:
        if retrying:
            pair = json.dumps(("said", json.dumps({"words": retrying}, ensure_ascii=False)))
            connection.execute("UPDATE activities SET retrying = ? WHERE uid = ?", (pair, uid))
        if silent:
            code, args = _silence(silent)
            given = json.dumps(args, ensure_ascii=False, sort_keys=True)
            connection.execute("UPDATE activities SET silent_why = ? WHERE uid = ?", (json.dumps((code, given)), uid))
            key = f"silent:{instance}:{hashlib.sha256(silent.encode()).hexdigest()[:8]}"
            connection.execute(
                "UPDATE outbox SET note_group = ?, note_edits = CASE edits WHEN '' THEN 0 ELSE seq END"
                " WHERE key = ? OR key GLOB ? || ':*'",
                (f"silent {instance} {code} {given}", key, key),
            )


def _silence(words: str) -> tuple[str, dict[str, str]]:
    """Return code and arguments; the last of the patterns matches whatever is said."""
    matches = ((code, pattern.fullmatch(words)) for pattern, code in SILENCES)
    return next((code, match.groupdict()) for code, match in matches if match)
