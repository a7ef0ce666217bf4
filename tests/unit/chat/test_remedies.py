"""A thread names what can be done in the chat: a button, or a command of the chat; a shell command with its machine."""

from __future__ import annotations

import ast
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.chat.remedies import as_done_there
from core.config.settings import Settings
from core.model.asking import Button, Press, Role, announced_buttons, session_buttons
from core.model.message import MessageState
from core.model.reasons import Reason
from core.session.commands import exact_for
from core.session.notes import buttons_of

CORE = Path(__file__).parents[3] / "core"
#: packages whose texts come into threads, or are the answer to a chat's command
SPOKEN = ("chat", "delivery", "harness", "lifecycle", "loops", "model", "session")
#: by the words of a command line: why no button and no command of a chat does it
NEEDS_THE_MACHINE = {
    "standing attach": "keys at the terminal are typed at the terminal",
    "start": "without a service nothing hears a chat",
    "restart": "it ends the service that hears the chat",
    "status": "it is asked where the service does not answer",
    "standing create": "what runs on a machine is defined there",
    "standing delete": "it cannot be taken back, and is done where the folder can be looked at",
    "standing announce": "whoever reads it has no announcement of the session to look at",
    "standing history": "conversations are files of the machine",
    "loop": "loops are made and paused by their agents and at the command line; a chat lists and stops them",
    "events": "the log is a file of the machine",
}
#: commands of which a note that names them has the button, with the label that it shows
BY_BUTTON = {"standing cancel": "Cancel", "standing confirm": "Send it", "loop stop": "Stop the loop"}
HOST = socket.gethostname()
ENVIRON = {"HOME": "/home/ann", "PATH": "/usr/bin"}
SETTINGS = Settings(Path("/state"))


def slash(role: Role) -> str:
    """Begin a chat's command; everybody there may give it."""
    return "/the-loop"


def members(role: Role) -> str:
    """Begin a chat's command where nobody is an operator."""
    return "" if role is Role.OPERATOR else "/the-loop"


def shown(text: str, *buttons: Button, typed: object = slash) -> str:
    """Return the text as the thread of `scribe` shows it, once it was made exact as every post is."""
    exact = exact_for(SETTINGS, ENVIRON, text)
    return as_done_there(exact, SETTINGS, ENVIRON, typed, buttons, "scribe")  # type: ignore[arg-type]


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module, `NAME` for what is put in later."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "NAME" for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield re.sub(r"{\w+}", "NAME", node.value)


def named() -> dict[str, str]:
    """Return the commands that texts name, with a module that does."""
    found = dict[str, str]()
    for package in SPOKEN:
        for path in (CORE / package).rglob("*.py"):
            for text in strings(ast.parse(path.read_text(encoding="utf-8"))):
                found |= {words: str(path.relative_to(CORE)) for words in re.findall(r"`the-loop ([^`…]+)`", text)}
    return found


def reason_for(words: str) -> str:
    """Return the key of NEEDS_THE_MACHINE under which the command stands, "" for none."""
    argv = shlex.split(words)
    keys = (words, " ".join(argv[:2]), argv[0])
    return next((key for key in keys if key in NEEDS_THE_MACHINE), "")


def test_every_command_that_a_text_names_is_done_in_the_chat_or_has_a_reason() -> None:
    """Whoever reads a remedy in Slack, far from the machine, can use it there."""
    left = {}
    for words, where in named().items():
        told = shown(f"`the-loop {words}`")
        if told.startswith("`/the-loop") or " ".join(words.split()[:2]) in BY_BUTTON:
            continue
        assert told.endswith(f"(on {HOST})")
        if not reason_for(words):
            left[words] = where

    assert left == {}


def test_each_reason_is_needed() -> None:
    """None is left over of a text that is gone."""
    used = {reason_for(words) for words in named()}

    assert set(NEEDS_THE_MACHINE) <= used


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("start it: `the-loop standing start scribe`", "start it: `/the-loop start scribe`"),
        ("`the-loop standing start scribe --fresh`", "`/the-loop new scribe`"),
        ("`the-loop standing queue scribe` lists them", "`/the-loop queue scribe` lists them"),
        ("`the-loop standing say scribe --text TEXT`", "`/the-loop say scribe TEXT`"),
        ("look at `the-loop standing list`", "look at `/the-loop list`"),
        ("`the-loop loop list scribe`", "`/the-loop loops scribe`"),
        ("no command: `make` and `the-loop", "no command: `make` and `the-loop"),
        ("an odd one: `the-loop it's`", f"an odd one: `the-loop it's` (on {HOST})"),
    ],
)
def test_a_shell_command_becomes_the_chats(text: str, told: str) -> None:
    """With its session; code that is no command of ours stays, and what cannot be read is left to the shell."""
    found = shown(text)

    assert found.replace(exact_for(SETTINGS, ENVIRON, "`the-loop x`").removesuffix(" x`"), "`the-loop") == told


def test_a_button_below_the_text_is_named_in_its_place() -> None:
    """It is the nearest; of another session, or another message, it is not the one that is meant."""
    start = session_buttons("s-1", Press.BRING_UP)
    cancel, confirm = Button(Press.CANCEL, "m-7", "Cancel"), Button(Press.CONFIRM, "m-7", "Send it")

    assert shown("To start it: `the-loop standing start scribe`", *start) == "To start it: *Start*"
    assert shown("`the-loop standing start other`", *start) == "`/the-loop start other`"
    text = "`the-loop standing confirm m-7` sends it; `the-loop standing cancel m-7` discards it"
    assert shown(text, cancel, confirm) == "*Send it* sends it; *Cancel* discards it"
    assert "*Cancel*" not in shown("`the-loop standing cancel m-8`", cancel)
    assert shown("`the-loop standing screen scribe`", *announced_buttons("s-1", lives=True)) == "*Screen*"


def test_where_nobody_is_an_operator_their_commands_are_the_machines() -> None:
    """Neither their buttons nor their slash commands are there for anybody."""
    start = session_buttons("s-1", Press.BRING_UP)

    assert shown("`the-loop standing start scribe`", *start, typed=members).endswith(f" (on {HOST})")
    assert shown("`the-loop standing resume scribe`", typed=members) == "`/the-loop resume scribe`"


def test_a_note_that_names_its_buttons_has_them() -> None:
    """The commands that a chat lacks have buttons below each note that names them."""
    late = buttons_of("m-7", "m-7", 1, MessageState.QUEUED, Reason.CONFIRM)

    assert {button.label for button in late} == {BY_BUTTON["standing confirm"], BY_BUTTON["standing cancel"]}
