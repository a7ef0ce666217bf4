"""What was asked elsewhere than in a thread is shown there, and nothing else is."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base.names import new_uid
from core.delivery.permission_requests import asked_elsewhere
from core.model.framing import framed
from core.model.harness import PromptReported, Report
from core.model.message import Kind, NewMessage, ReplyAddress
from core.model.posts import asked_text
from core.model.session import SessionRecord
from core.session.system import System
from tests.support.world import definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)
ADDRESS = ReplyAddress("slack", "T1", "C1", "1.0", "1.1")
SAID = NewMessage(
    "m-1", "k-1", "", "scribe", 1, Kind.SAY, "cli:ann", "ann", "cli", "abcdef", "feed\nthe owl", False, 1, T0
)


@pytest.fixture
def record() -> SessionRecord:
    """Give a record with an instance."""
    return SessionRecord("scribe", new_uid(), definition("scribe"), T0, instance_id="i-1")


def shown(system: System, record: SessionRecord, event: PromptReported, agent: str = "") -> list[tuple[str, str]]:
    """Return keys and texts of what the thread is told."""
    report = Report("i-1", "1700.json", {"agent_id": agent} if agent else {})
    return [(post.key, post.text) for post in asked_elsewhere(system.settings, system.inbox, record, report, event)]


def said(system: System, record: SessionRecord, **changes: object) -> PromptReported:
    """Commit a message, and return what the harness reports of it."""
    message = replace(SAID, uid=record.uid, **changes)  # type: ignore[arg-type]
    system.inbox.add([message])
    return PromptReported(framed(message))


def test_what_a_command_said_is_shown_with_who_said_it(system: System, record: SessionRecord) -> None:
    """Once, however often its harness reports it; without the frame that the agent sees."""
    event = said(system, record)

    assert shown(system, record, event) == [("asked:m-1", "**ann via cli:**\n> feed\n> the owl")]


def test_what_another_agent_said_is_shown_as_its(system: System, record: SessionRecord) -> None:
    """An answer to it would otherwise come out of nowhere."""
    event = said(system, record, who="builder", via="agent", actor="agent:builder")

    assert shown(system, record, event) == [("asked:m-1", "**agent builder:**\n> feed\n> the owl")]


def test_messages_that_a_harness_joined_are_shown_in_their_order(system: System, record: SessionRecord) -> None:
    """Each as its own."""
    first = said(system, record, order_us=1)
    second = said(system, record, id="m-2", key="k-2", marker="bcdefg", text="and the wren", order_us=2)

    found = shown(system, record, PromptReported(f"{first.prompt}\n{second.prompt}"))

    assert [key for key, _ in found] == ["asked:m-1", "asked:m-2"]


def test_what_was_typed_is_shown_as_such(system: System, record: SessionRecord) -> None:
    """Who it was nobody knows."""
    assert shown(system, record, PromptReported("feed it")) == [
        ("asked:i-1:1700.json", "**at the terminal:**\n> feed it")
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": Kind.REPLY, "address": ADDRESS, "via": "slack", "actor": "slack:U1"},
        {"kind": Kind.TICK, "via": "", "who": "the-loop"},
        {"kind": Kind.BOOT, "via": "", "raw": True, "text": "[the-loop boot #abcdef] feed the owl"},
        {"via": "slack", "actor": "slack:U1"},
    ],
)
def test_nothing_else_is_shown(system: System, record: SessionRecord, changes: dict[str, object]) -> None:
    """Replies stand there, loops and starts are announced, and a slash command was nobody else's to read."""
    configured = replace(system, settings=system.settings._replace(channels={"slack": {}}))  # type: ignore[dict-item]

    assert shown(configured, record, said(configured, record, **changes)) == []


def test_what_nobody_asked_is_not_shown(system: System, record: SessionRecord) -> None:
    """A subagent's prompt, and what a harness tells itself."""
    assert shown(system, record, PromptReported("look into it"), agent="a-7") == []
    assert shown(system, record, PromptReported("<task-notification>", internal=True)) == []
    assert shown(system, record, PromptReported(" \n")) == []


def test_a_long_question_is_cut_and_counted() -> None:
    """The terminal has all of it."""
    text = asked_text("ann via cli", "x" * 2_000)

    assert len(text) < 1_700
    assert "[500 more characters: see the session's terminal]" in text
