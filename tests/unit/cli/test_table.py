"""The one table of commands: each row is what every surface offers, lets do, and tells."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import pytest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.app import Direct, Sessions, answer
from bot.channel import SlackChannel
from bot.clients import Tokens
from bot.creating import Creating
from bot.directory import Directory
from bot.home import Homes
from bot.intake import AsyncDoor
from bot.manifest import usage_hint
from bot.payloads import command
from bot.settings import SlackSettings
from bot.views import View
from core.base.clock import SystemClock
from core.base.errors import CoreError, NotPermitted
from core.base.files import private_folder
from core.base.values import replace
from core.chat.commands import Orders, orders_of
from core.cli import quick
from core.cli.app import HANDLERS
from core.cli.building import add_commands
from core.cli.reference import reference_text
from core.cli.session import Session
from core.commandtable import COMMANDS, GROUPS, Argument, Call, Command, in_chat
from core.model.asking import Role
from core.model.channel import IncomingOrder
from core.model.rows import Answer, Row
from core.model.session import ActorKind, Definition, Outcome, SessionRecord, Status, Verb, permitted
from core.service.wiring import build_system
from core.session.system import System
from core.store.records import Records
from tests.integration.bot.served import Door
from tests.unit.cli.conftest import Terminal
from tests.unit.store.samples import NOON

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
TEAM, READER, APPROVER, OPERATOR, STRANGER = "T1", "UREADER", "UAPPROVER", "UOPERATOR", "USTRANGER"
LISTS = {"authorizedUsers": [READER], "approvers": [APPROVER], "operators": [OPERATOR]}
MAY = {Role.MEMBER: {READER, OPERATOR}, Role.OPERATOR: {OPERATOR}}


def greet(call: Call, name: str) -> Answer:
    """Do nothing, and tell who asked for it."""
    return Answer((Row(name, outcome=Outcome.WAITING, detail=f"greeted by {call.actor}"),))


GREET = Command(
    "standing greet", "Greet a session.", Verb.SAY, (Argument("NAME", required=True),), chat="greet NAME", run=greet
)
TABLE = (*COMMANDS, GREET)


class Slack(AsyncWebClient):
    """Slack, as far as it says who somebody is: a full member of our team."""

    async def users_info(self, *, user: str, **_: Any) -> AsyncSlackResponse:
        """Return the member."""
        data = {"ok": True, "user": {"id": user, "team_id": TEAM, "name": user.lower()}}
        return AsyncSlackResponse(
            client=self, http_verb="GET", api_url="", req_args={}, data=data, headers={}, status_code=200
        )


def has_role(author: str, role: Role) -> bool:
    """Return whether somebody has the role by the lists of this module."""
    return SlackChannel(dict(LISTS), {}).has_role(author, role)


def said(door: Door, words: str, caller: str, table: Iterable[Command] = COMMANDS) -> View:
    """Return what the caller gets to see of `/the-loop WORDS`."""

    async def ask() -> View:
        settings = SlackSettings.of(LISTS)
        tokens = Tokens(settings, {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-1"})
        directory = Directory(Slack(), tokens, SystemClock())
        awaited, slack = AsyncDoor(door), Slack()
        creating = Creating(slack, tokens, awaited, directory, settings)
        homes = Homes(slack, tokens, awaited, lambda *_: "", SystemClock(), 10.0)
        sessions = Sessions(
            awaited,
            lambda *_: "F1",
            directory,
            settings,
            has_role,
            lambda: TEAM,
            creating,
            Direct(slack, tokens, awaited),
            homes,
            lambda: None,
            SystemClock().now,
            commands=in_chat(table),
        )
        told = await answer(command({"user_id": caller, "team_id": TEAM, "text": words}), sessions)
        assert told.draft is not None
        return told.draft(lambda text, *, verbatim=False: text)

    return asyncio.run(ask())


@pytest.fixture
def system(terminal: Terminal) -> System:
    """Give a the-loop in which `scribe` is recorded, with nothing that runs."""
    private_folder(terminal.paths.records)
    record = SessionRecord("scribe", "s-scribe", Definition("scribe"), NOON, status=Status.RUNNING)
    Records(terminal.paths).write(record)
    return build_system(Session(terminal.config).settings, {})


def order(system: System, verb: str, caller: str, table: Iterable[Command]) -> str:
    """Return what core tells somebody in a chat who says `VERB scribe`. Raises CoreError."""
    asked = IncomingOrder("slack", caller, caller.lower(), verb, "scribe", "hello")
    return Orders(system, "slack", has_role, orders_of(table)).order(asked).text


def test_a_row_is_found_on_every_surface(
    terminal: Terminal, system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row: a command line with its help, a slash command with its help, the manifest's hint, and the page."""
    root = click.Group("the-loop")
    add_commands(root, TABLE, HANDLERS)
    door = Door()

    for words in (["standing", "--help"], ["standing", "greet", "scribe"]):
        root.main(words, obj=Session(terminal.config), standalone_mode=False)
    printed = capsys.readouterr().out
    answered = said(door, "greet scribe", READER, TABLE)

    assert "greet      Greet a session." in printed
    assert "greeted by cli:" in printed
    assert answered.text == "greet done"
    assert [(one.verb, one.name) for one in door.orders] == [("greet", "scribe")]
    assert order(system, "greet", READER, TABLE) == f"scribe: waiting: greeted by slack:{READER}"
    assert "`/the-loop greet NAME`: Greet a session." in str(said(door, "help", READER, TABLE).blocks)
    assert said(door, "greet", READER, TABLE).text.endswith("/the-loop greet NAME")
    assert usage_hint(TABLE) == f"{usage_hint(COMMANDS)} | greet NAME"
    assert "### `the-loop standing greet NAME`\n\nGreet a session." in reference_text(TABLE)
    assert "| `/the-loop greet NAME` | members | Greet a session. |" in reference_text(TABLE)


@pytest.mark.parametrize(
    ("row", "surface", "named"),
    [
        ("'standing greet', 'Greet a session.'", "core.cli.app", "standing greet"),
        ("'', 'Greet a session.', chat='greet NAME'", "core.chat.commands", "greet"),
        ("'', 'Greet everybody.', chat='greet'", "bot.app", "greet"),
    ],
)
def test_a_row_that_nothing_runs_does_not_import(row: str, surface: str, named: str) -> None:
    """The surface that would offer it says which one it is: none is offered that does nothing, or something else."""
    program = f"import core.commandtable as t; t.COMMANDS += (t.Command({row}),); import {surface}"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert f"NoHandler: `{named}` has no handler" in ended.stderr


@pytest.mark.parametrize("caller", [READER, APPROVER, OPERATOR, STRANGER])
@pytest.mark.parametrize("verb", in_chat(COMMANDS))
def test_the_role_of_a_row_is_what_a_chat_enforces(system: System, verb: str, caller: str) -> None:
    """For whoever reads, approves, operates, or is nobody: by the front, and by core whatever the front lets by."""
    row, door = replace(in_chat(COMMANDS)[verb], run=greet), Door()
    may = caller in MAY[row.role]
    if row.takes_text:
        row = replace(row, run=lambda call, name, text: greet(call, name))

    said(door, f"{verb} scribe hello" if row.takes_text else f"{verb} scribe" if row.names else verb, caller)

    assert [refused.what for refused in door.refused] == ([] if may else [verb])
    assert bool(door.orders) == (may and row.names)
    if row.names:
        assert _runs(system, row, caller) is may


def _runs(system: System, row: Command, caller: str) -> bool:
    try:
        return "greeted by" in order(system, row.word, caller, [row])
    except CoreError:
        return False


@pytest.mark.parametrize("row", [one for one in COMMANDS if one.cli], ids=lambda row: str(row.cli))
def test_the_right_of_a_row_is_what_the_command_line_enforces(row: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session's pane a command runs if its row lets agents, whatever runs it; an operator's runs anyway."""
    monkeypatch.setenv("THE_LOOP_INSTANCE", "i-of-an-agent")
    root, ran = click.Group("the-loop"), list[str | None]()

    def handler(session: Session, **_: Any) -> int:
        ran.append(session.agent)
        return 0

    add_commands(root, [row], {row.cli: handler})
    needed = [
        [*one.choices[:1]] or ["scribe"] if not one.is_option else [one.word, "x"] for one in row.takes if one.required
    ]
    words = [*row.cli.split(), *(word for words in needed for word in words)]

    with nullcontext() if _for_agents(row) else pytest.raises(NotPermitted):
        root.main(words, obj=Session(), standalone_mode=False)
    root.main([*words, "--as-operator"], obj=Session(), standalone_mode=False)

    assert ran == (["i-of-an-agent", None] if _for_agents(row) else [None])


def _for_agents(row: Command) -> bool:
    return row.right is None or permitted(ActorKind.AGENT, row.right)


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.cli or row.chat)
def test_what_runs_a_row_takes_what_the_row_says(row: Command) -> None:
    """By the same names, so that no command fails once it is given."""
    given = {one.parameter: None for one in row.takes}

    if row.cli in HANDLERS:
        inspect.signature(HANDLERS[row.cli]).bind(None, **given)
    elif row.cli and row.run is not None:
        inspect.signature(row.run).bind(None, **given)
    if row.names and row.run is not None:
        inspect.signature(row.run).bind(None, "scribe", **({"text": ""} if row.takes_text else {}))


def test_every_command_is_there_once() -> None:
    """No row hides another, and no handler is bound to words that are none."""
    lines, verbs = [one.cli for one in COMMANDS if one.cli], [one.word for one in COMMANDS if one.chat]

    assert len(lines) == len(set(lines))
    assert len(verbs) == len(set(verbs))
    assert HANDLERS.keys() <= set(lines)
    assert {one.group for one in COMMANDS} == {"", *GROUPS}
    assert all(one.cli or one.chat for one in COMMANDS)


def test_every_command_and_every_option_is_explained() -> None:
    """Whoever reads help or the page is told what each is for."""
    assert [one for one in COMMANDS if not one.help] == []
    assert [one for row in COMMANDS for one in row.takes if one.is_option and not one.help] == []


def test_the_quick_way_waits_as_long_as_the_table_says() -> None:
    """`standing say` is answered without the table, for it must start fast."""
    [wait] = [one for row in COMMANDS if row.cli == "standing say" for one in row.takes if one.word == "--wait"]

    assert wait.default == quick.SAY_SECONDS


def test_the_page_is_generated_from_the_table() -> None:
    """A command that is added, removed or described anew changes the page in the same commit."""
    assert PAGE.read_text(encoding="utf-8") == reference_text(COMMANDS), (
        "write it again: python -m core.cli.reference > docs/commands.md"
    )
