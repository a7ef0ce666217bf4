"""Whatever Slack, or somebody in its name, sends: it is read without a fault, and nobody becomes somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import payloads
from bot.payloads import Identity, Ignored, Person, as_known
from core.chat.inbound import check_author, check_shape, check_team
from core.model.channel import IncomingReply

OWN = Identity("T1", "UBOT", "BBOT", "the-loop")
ROOT, TS = "1700000000.000100", "1700000001.000100"
REPLY: dict[str, Any] = {
    "type": "message",
    "user": "U1",
    "team": "T1",
    "user_team": "T1",
    "channel": "C1",
    "thread_ts": ROOT,
    "ts": TS,
    "text": "do it",
}

SUBTYPES: tuple[Any, ...] = (
    "message_changed", "message_deleted", "message_replied", "channel_join", "channel_topic", "reminder_add",
    "tombstone", "assistant_app_thread", "huddle_thread", "FILE_SHARE", 7, 0, False, ["file_share"], {},
)  # fmt: skip


def passes(event: Mapping[str, Any], shared: bool | None = False) -> IncomingReply | None:
    """Return the reply if core's checks, but the lists, let it pass."""
    found = payloads.reply({"event": event, "is_ext_shared_channel": shared}, OWN)
    if isinstance(found, Ignored) or check_shape(found) or check_author(found) or check_team(found):
        return None
    return found


def test_the_plain_one_passes() -> None:
    """So that what the others lack is what they are refused for."""
    assert passes(REPLY) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"bot_id": "B9"},
        {"bot_profile": {"id": "B9"}},
        {"subtype": "bot_message"},
        {"user": "USLACKBOT"},
        {"user": ""},
        {"user": None},
        {"user": ["U1"]},
        {"user": "UBOT"},
        {"bot_id": "BBOT"},
        {"user_team": "T2"},
        {"source_team": "T2"},
        {"team": "T2"},
        {"user_team": "T2", "user": "T1:U1"},
        {"hidden": True},
        {"message": {"text": "do it"}},
        {"thread_ts": None},
        {"thread_ts": TS},
        {"thread_ts": "later"},
        {"ts": "1700000001"},
        {"ts": 1700000001.0001},
        {"ts": "1700000001.000100\nX"},
        {"channel": ""},
        {"channel": {"id": "C1"}},
        {"type": "app_mention"},
        {"type": None},
        {"hidden": "true"},
        {"hidden": 1},
        {"message": [{"text": "do it"}]},
        {"message": "do it"},
        *({"subtype": subtype} for subtype in SUBTYPES),
        *({key: odd} for key in ("user_team", "source_team", "team", "bot_id") for odd in (7, 0, ["T1"], {"id": "T2"})),
    ],
)  # fmt: skip
def test_what_no_member_of_ours_typed_does_not_pass(changes: dict[str, Any]) -> None:
    """One mark of another origin or shape is enough."""
    assert passes({**REPLY, **changes}) is None


@pytest.mark.parametrize("shared", [True, None, False])
def test_without_a_team_of_its_own_nothing_passes_in_a_shared_channel(shared: bool | None) -> None:
    """The wrapper's team is the installation's; only where nobody else can write does it speak for the author."""
    event = {key: value for key, value in REPLY.items() if key != "user_team"}

    assert (passes(event, shared) is not None) == (shared is False)


@pytest.mark.parametrize(
    ("person", "author", "team"),
    [
        (Person("U1", "alice", "T1", False, False), "U1", "T1"),
        (Person("U1", "alice", "T1", False, False, is_guest=True), "T1:U1", "T1"),
        (Person("U1", "alice", "T2", False, False), "T2:U1", "T2"),
        (Person("U1", "alice", "T1", False, True), "U1", ""),
    ],
)
def test_guests_and_outsiders_are_named_with_their_team(person: Person, author: str, team: str) -> None:
    """Whoever lists `U1` means a full member; the others are listed as `T…:U…`, or not at all."""
    found = payloads.reply({"event": {**REPLY, "user_team": "", "team": ""}, "is_ext_shared_channel": True}, OWN)
    assert isinstance(found, IncomingReply)

    known = as_known(found, person)

    assert (known.author, known.author_team) == (author, team)


def test_an_outsider_stays_one_whatever_users_info_says() -> None:
    """The event says another team than users.info: the stranger one counts."""
    found = payloads.reply({"event": {**REPLY, "user_team": "T2"}, "is_ext_shared_channel": True}, OWN)
    assert isinstance(found, IncomingReply)

    known = as_known(found, Person("U1", "alice", "T1", False, False))

    assert (known.author, known.author_team) == ("T2:U1", "T2")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(
    [*REPLY, "subtype", "bot_id", "files", "blocks", "message", "previous_message", "hidden", "edited"]
)


@given(st.dictionaries(keys, anything, max_size=8), st.booleans(), anything)
def test_no_document_is_a_fault(changes: dict[str, Any], whole: bool, shared: Any) -> None:
    """Every dictionary is read, and what passes is well-formed and of our own team."""
    event = {**(REPLY if whole else {}), **changes}
    payload = {"event": event, "is_ext_shared_channel": shared}

    found, changed = payloads.reply(payload, OWN), payloads.change(payload, OWN)

    assert isinstance(changed, Ignored | tuple)
    if isinstance(found, IncomingReply) and not (check_shape(found) or check_author(found) or check_team(found)):
        assert (found.author_team, found.is_bot, found.is_self) == ("T1", False, False)
        assert found.author


@given(anything)
def test_no_event_is_a_fault_whatever_it_is(event: Any) -> None:
    """Not even one that is no mapping."""
    assert isinstance(payloads.reply({"event": event}, OWN), Ignored | IncomingReply)
    assert isinstance(payloads.change({"event": event}, OWN), Ignored | tuple)
    assert isinstance(payloads.messages({"messages": event}), tuple)
    assert payloads.files({"files": event}) is not None


def test_a_link_preview_is_no_edit() -> None:
    """Slack changes the message by itself; its text stays."""
    changed = {
        "type": "message",
        "subtype": "message_changed",
        "channel": "C1",
        "hidden": True,
        "ts": "1700000009.000100",
    }
    preview = {**changed, "message": {**REPLY, "attachments": [{}]}, "previous_message": REPLY}
    edit = {**changed, "message": {**REPLY, "text": "do that", "edited": {}}, "previous_message": REPLY}

    assert isinstance(payloads.change({"event": preview, "is_ext_shared_channel": False}, OWN), Ignored)
    found = payloads.change({"event": edit, "is_ext_shared_channel": False}, OWN)
    assert not isinstance(found, Ignored)
    assert (found[0].reply.ts, found[0].reply.text, found[0].deleted) == (TS, "do that", False)


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ({"id": "F1", "name": "a", "mode": "hosted", "url_private": "https://files.slack.com/a", "size": 3}, ""),
        ({"id": "F1", "name": "a", "mode": "snippet", "url_private": "https://files.slack.com/a"}, ""),
        ({"id": "F1", "mode": "file_access", "file_access": "check_file_info"}, ""),
        ({"id": "F1", "mode": "external", "url_private": "https://drive.example.com/a"}, "another site"),
        (
            {"id": "F1", "mode": "hosted", "is_external": True, "url_private": "https://files.slack.com/a"},
            "another site",
        ),
        ({"id": "F1", "mode": "tombstone"}, "deleted"),
        ({"id": "F1", "mode": "hidden_by_limit"}, "plan"),
        ({"id": "F1", "mode": "hosted"}, "no address"),
    ],
)
def test_files_that_are_not_slacks_to_give_say_so(file: dict[str, Any], problem: str) -> None:
    """They are named with the reason, and never asked for."""
    [found] = payloads.files({"files": [file]})

    assert problem in found.problem
    assert bool(found.problem) == bool(problem)
    assert not (found.problem and found.url)


@pytest.mark.parametrize("key", ["channel", "thread_ts", "ts", "user", "user_team", "bot_id", "subtype"])
def test_half_a_character_is_kept_nowhere(key: str) -> None:
    """JSON may hold one half of a surrogate pair, which no file, database or socket takes."""
    found = payloads.reply({"event": {**REPLY, key: f"{REPLY.get(key, 'B1')}\ud800"}}, OWN)

    told = (found.reason,) if isinstance(found, Ignored) else tuple(vars(found).values())
    assert all(str(value).encode() for value in told if value)


def test_a_files_words_can_be_kept() -> None:
    """Its id, name, kind and address are told to people and to the agent."""
    odd = {key: f"x\ud800{key}" for key in ("id", "name", "mimetype", "url_private", "mode")}

    [found] = payloads.files({"files": [odd]})

    assert all(str(value).encode() for value in vars(found).values() if value)


def test_a_command_and_a_press_can_be_kept() -> None:
    """Whatever their fields hold."""
    said = payloads.command({"text": "say scribe \ud800", "user_id": "U\ud800", "team_id": "T1"})
    user, container = {"id": "U1\ud800", "team_id": "T1"}, {"message_ts": TS, "thread_ts": ROOT, "channel_id": "C1"}
    body = {"user": user, "container": container, "actions": [{"action_id": "the_loop_x\ud800", "value": "\ud800"}]}
    pressed = payloads.press(body, OWN)

    assert pressed is not None
    for value in (*vars(said).values(), *vars(pressed).values()):
        str(value).encode()
