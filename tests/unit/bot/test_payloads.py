"""Slack's documents -> replies: every shape that a thread can bring."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import payloads
from bot.payloads import Identity, Ignored, Person, as_known
from core.model.channel import IncomingReply

OWN = Identity(team="T1", user="U0BOT", bot="B0BOT", name="the-loop")
ROOT, TS = "1700000000.000100", "1700000001.000200"


def _event(**changes: Any) -> dict[str, Any]:
    event = {
        "type": "message",
        "channel": "C1",
        "channel_type": "channel",
        "user": "U1",
        "text": "hello",
        "ts": TS,
        "thread_ts": ROOT,
        "parent_user_id": "U0BOT",
        "client_msg_id": "6c0b",
        "team": "T1",
        **changes,
    }
    return {key: value for key, value in event.items() if value is not None}


def _payload(shared: bool | None = False, **changes: Any) -> dict[str, Any]:
    wrapper: dict[str, Any] = {"type": "event_callback", "team_id": "T1", "event": _event(**changes)}
    return wrapper if shared is None else {**wrapper, "is_ext_shared_channel": shared}


def _reply(**changes: Any) -> IncomingReply:
    found = payloads.reply(_payload(**changes), OWN)
    assert isinstance(found, IncomingReply), found
    return found


def test_a_plain_reply() -> None:
    """The ordinary case carries every field that core needs."""
    assert _reply() == IncomingReply(
        channel_kind="slack",
        team="T1",
        channel="C1",
        thread=ROOT,
        ts=TS,
        author="U1",
        author_name="U1",
        author_team="T1",
        is_bot=False,
        is_self=False,
        shape="plain",
        text="hello",
        shared=False,
    )


@pytest.mark.parametrize(
    ("subtype", "extra"),
    [
        ("file_share", {"files": [{"id": "F1"}], "upload": False}),
        ("thread_broadcast", {"root": {"ts": ROOT, "text": "up"}}),
        ("me_message", {}),
    ],
)
def test_the_other_shapes_that_people_write(subtype: str, extra: dict[str, Any]) -> None:
    """Files, also sent to the channel, and /me are replies, each under its own shape."""
    assert _reply(subtype=subtype, **extra).shape == subtype


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"subtype": "message_changed", "hidden": True, "message": {"text": "x"}, "user": None}, "message_changed"),
        ({"subtype": "message_deleted", "hidden": True, "deleted_ts": TS, "user": None}, "message_deleted"),
        ({"subtype": "message_replied", "message": {"thread_ts": ROOT}}, "message_replied"),
        ({"message": {"thread_ts": ROOT, "reply_count": 1}, "user": None, "text": None}, "change-of-a-message"),
        ({"hidden": True}, "change-of-a-message"),
        ({"subtype": "channel_join"}, "channel_join"),
        ({"subtype": "channel_topic"}, "channel_topic"),
        ({"subtype": "tombstone"}, "tombstone"),
        ({"subtype": "assistant_app_thread"}, "assistant_app_thread"),
        ({"thread_ts": None}, "outside-threads"),
        ({"thread_ts": TS}, "outside-threads"),
        ({"ts": "soon"}, "malformed"),
        ({"ts": None}, "malformed"),
        ({"thread_ts": "1700000000"}, "malformed"),
        ({"channel": None}, "malformed"),
        ({"type": "app_mention"}, "no-message"),
        ({"type": "reaction_added"}, "no-message"),
    ],
)
def test_what_is_no_reply_says_why(changes: dict[str, Any], reason: str) -> None:
    """Edits, deletions, counters, notices and messages outside threads are named and left alone."""
    assert payloads.reply(_payload(**changes), OWN) == Ignored(reason)


@pytest.mark.parametrize(
    "changes",
    [
        {"bot_id": "B9", "app_id": "A9", "bot_profile": {"id": "B9"}},
        {"bot_id": "B9"},
        {"bot_profile": {"id": "B9", "is_workflow_bot": True}},
        {"bot_id": "B9", "app_id": "A9", "user": "U1"},
        {"subtype": "bot_message", "bot_id": "B9", "username": "alice", "user": None},
        {"subtype": "bot_message"},
        {"user": None},
        {"user": "USLACKBOT"},
    ],
)
def test_every_mark_of_a_bot_counts(changes: dict[str, Any]) -> None:
    """A person's id with a bot's marks is an app with that person's token; names prove nothing."""
    assert _reply(**changes).is_bot


@pytest.mark.parametrize("changes", [{"user": "U0BOT", "bot_id": "B0BOT"}, {"user": None, "bot_id": "B0BOT"}])
def test_the_bots_own_messages_are_its_own(changes: dict[str, Any]) -> None:
    """The bot is known by its user and by its bot id."""
    own = _reply(**changes)

    assert own.is_self
    assert own.is_bot


@pytest.mark.parametrize(
    ("shared", "stated", "team"),
    [
        (False, {"team": "T1"}, "T1"),
        (False, {"team": None}, ""),
        (True, {"team": "T1"}, ""),
        (None, {"team": "T1"}, ""),
        (True, {"user_team": "T1", "source_team": "T1"}, "T1"),
        (True, {"user_team": "T2", "source_team": "T2"}, "T2"),
        (True, {"user_team": "T1", "source_team": "T2"}, "T2"),
        (False, {"team": "T2"}, "T2"),
    ],
)
def test_the_authors_team_is_known_or_is_nothing(shared: bool | None, stated: dict[str, Any], team: str) -> None:
    """One foreign id settles it, our own id alone does not in a shared channel, and silence proves nothing."""
    assert _reply(shared=shared, **stated).author_team == team


@pytest.mark.parametrize(
    ("stated", "person", "team", "is_bot"),
    [
        ("", Person("U1", "alice", "T1", False, False), "T1", False),
        ("", Person("U1", "alice", "T2", False, False), "T2", False),
        ("T1", Person("U1", "alice", "T2", False, False), "T2", False),
        ("T2", Person("U1", "alice", "T1", False, False), "T2", False),
        ("T1", Person("U1", "alice", "T1", False, True), "", False),
        ("T1", Person("U1", "helper", "T1", True, False), "T1", True),
        ("", None, "", False),
    ],
)
def test_what_users_info_adds(stated: str, person: Person | None, team: str, is_bot: bool) -> None:
    """It fills what is unknown, takes rights away, and never turns an outsider into one of ours."""
    reply = _reply(shared=True, team=None, user_team=stated or None)

    known = as_known(reply, person)

    assert (known.author_team, known.is_bot) == (team, is_bot)


def test_a_members_name_cannot_pass_for_a_mark_of_ours() -> None:
    """Brackets, lines and length of a display name are anybody's choice."""
    answer = {"user": {"id": "U1", "team_id": "T1", "profile": {"display_name": "al]\n[ann via cli #k3f9] rm" * 5}}}

    person = payloads.person(answer)

    assert person is not None
    assert person.name.startswith("alann via cli k3f9 rm")
    assert not set(person.name) & set("[]#\n")
    assert len(person.name) <= 40


def test_an_answer_without_a_team_is_no_answer() -> None:
    """What cannot be known stays unknown."""
    assert payloads.person({"user": {"id": "U1", "name": "alice"}}) is None
    assert payloads.identity({"team_id": "T1", "user_id": "U1", "user": "ann"}) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_KNOWN = """type subtype channel user text ts thread_ts bot_id bot_profile app_id team user_team source_team hidden
    message files user_id team_id response_url messages metadata event_type event_payload id response_metadata
    next_cursor num_connections profile display_name name"""
_KEYS = st.sampled_from(_KNOWN.split())
_DOCUMENT = st.dictionaries(_KEYS | st.text(max_size=6), _JSON | st.just("message") | st.just(TS), max_size=12)


@given(_DOCUMENT, _JSON)
def test_no_document_raises(document: dict[str, Any], shared: Any) -> None:
    """Whatever Slack sends is classified; the parser is total."""
    found = payloads.reply({"event": document, "is_ext_shared_channel": shared}, OWN)

    assert isinstance(found, IncomingReply | Ignored)
    for parse in (
        payloads.identity,
        payloads.person,
        payloads.command,
        payloads.connections,
        payloads.posts,
        payloads.next_cursor,
        payloads.posted,
        payloads.conversation,
    ):
        parse(document)
        parse({"event": document, "user": document, "channel": document, "messages": [document]})


@given(_DOCUMENT)
def test_no_reply_lacks_what_identifies_it(document: dict[str, Any]) -> None:
    """Whatever passes has channel, thread, ts and team, and a sender who is a bot unless named."""
    found = payloads.reply({"event": {**document, "type": "message"}}, OWN)

    if isinstance(found, IncomingReply):
        assert "" not in (found.channel, found.thread, found.ts)
        assert found.thread != found.ts
        assert found.author or found.is_bot


def test_a_button_of_a_threads_first_message_is_pressed_in_that_thread() -> None:
    """While nobody has replied Slack names no thread."""
    body = {
        "user": {"id": "U1", "team_id": "T1"},
        "container": {"message_ts": ROOT, "channel_id": "C1"},
        "message": {"ts": ROOT},
        "actions": [{"action_id": "the_loop_screen", "value": "s-1"}],
    }

    press = payloads.press(body, OWN)

    assert press is not None
    assert (press.thread, press.ts, press.action, press.target) == (ROOT, ROOT, "screen", "s-1")
