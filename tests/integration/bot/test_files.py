"""Files that come with messages: fetched after the commit, and told where they could not be had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bot import files
from bot.files import may_carry_the_token
from core.model.message import Fetched
from embedded.workspace import shapes
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import Door, Served
from tests.support.elsewhere import Elsewhere, somewhere_else


def fetched(door: Door, ts: str) -> list[Fetched]:
    """Return what became of a message's files."""
    return door.wait(lambda seen: seen.told.get(ts))


def test_a_file_is_fetched_and_told(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Its bytes are kept as they are; name, type and size come along."""
    root = served.thread()

    ts = workspace.say("alice", "agents", "see this", root, files={"notes.txt": "grüße\n", "b.txt": "b"})

    first, second = fetched(door, ts)
    assert (first.attachment.name, first.attachment.kind, first.size) == ("notes.txt", "text/plain", 8)
    assert first.path == f"/files/{ts}/notes.txt"
    assert [door.kept[f"{ts}/1"], door.kept[f"{ts}/2"]] == ["grüße\n".encode(), b"b"]
    assert second.problem == ""


def test_a_file_without_a_word_is_a_message(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Whoever drops a file into the thread says something by it."""
    root = served.thread()

    ts = workspace.say("alice", "agents", "", root, files={"notes.txt": "x"})

    assert fetched(door, ts)[0].path
    assert door.replies[-1].text == ""


def test_a_sign_in_page_is_no_file(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Without the scope Slack answers 200 and HTML; the agent must not take that for what somebody sent."""
    root = served.thread()
    workspace.set_scopes(["chat:write", "channels:history", "channels:read", "users:read", "commands"])

    ts = workspace.say("alice", "agents", "see this", root, files={"notes.txt": "x"})

    [file] = fetched(door, ts)
    assert "files:read" in file.problem
    assert door.kept == {}


def test_what_an_earlier_process_left_is_fetched_at_the_start(workspace: WorkspaceThread, door: Door) -> None:
    """A message that was committed before a crash gets its files by the next process."""
    with Served(workspace, door) as served:
        door.wait_until_up()
        ts = workspace.say("alice", "agents", "see", served.thread(), files={"notes.txt": "x"})
        fetched(door, ts)
        served.stop()
    door.told.clear()

    with Served(workspace, door):
        again = fetched(door, ts)

    assert again[0].path


def test_a_channel_that_cannot_read_tells_so_and_holds_nothing_up(workspace: WorkspaceThread, door: Door) -> None:
    """With a revoked token the message goes on without its files."""
    with Served(workspace, door) as served:
        door.wait_until_up()
        ts = workspace.say("alice", "agents", "see", served.thread(), files={"notes.txt": "x"})
        fetched(door, ts)
        served.stop()
    door.told.clear()
    workspace.set_revoked()

    with Served(workspace, door) as served:
        served.ended()

    assert door.told[ts][0].problem


def test_a_voice_clip_comes_with_its_words(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """All that Slack has written down of it, of which the message shows the beginning alone."""
    root, words = served.thread(), "please roll back the release, and then tell Robin about it"

    ts = workspace.do(lambda c: c.clip("alice", "agents", words, root))

    [clip] = fetched(door, ts)
    assert (clip.said, clip.problem, clip.size) == (words, "", 4)


def test_a_voice_clip_waits_for_its_words(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Slack tells of the message first, and writes down what is said in it afterwards."""
    root = served.thread()
    ts = workspace.do(lambda c: c.clip("alice", "agents", "", root, written=False))
    [reply] = door.wait_for_replies(1)

    workspace.do(lambda c: c.write_down(reply.files[0].id, "short words"))

    assert [clip.said for clip in fetched(door, ts)] == ["short words"]


def test_files_of_a_forwarded_message_are_fetched(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """They are in the quote, not in the message that brings it."""
    root = served.thread()
    there = workspace.say("bob", "agents", "the log", files={"db.log": "full"})

    ts = workspace.do(lambda c: c.forward("alice", "agents", there, "agents", "", root))

    [file] = fetched(door, ts)
    assert (file.attachment.name, file.size, file.problem) == ("db.log", 4, "")


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """Give a server that is not Slack's."""
    with somewhere_else() as server:
        yield server


def test_the_token_goes_nowhere_else(
    workspace: WorkspaceThread, door: Door, served: Served, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file object that names another host gets no request at all."""
    root = served.thread()
    view = shapes.file_view
    monkeypatch.setattr(
        shapes, "file_view", lambda doc, base: view(doc, base) | {"url_private_download": elsewhere.url}
    )

    ts = workspace.say("alice", "agents", "see", root, files={"notes.txt": "x"})

    assert "where the token must not go" in fetched(door, ts)[0].problem
    assert elsewhere.seen == []


def test_what_is_too_large_is_not_begun(
    workspace: WorkspaceThread, door: Door, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stated size is enough to refuse."""
    monkeypatch.setattr(files, "SIZE_MAX", 10)
    root = served.thread()

    ts = workspace.say("alice", "agents", "see", root, files={"big.txt": "x" * 11, "small.txt": "x"})

    big, small = fetched(door, ts)
    assert "11 bytes, and at most 10 are fetched" in big.problem
    assert small.path


@pytest.mark.parametrize("stated", [0, 1])
def test_a_size_that_is_stated_too_small_is_caught_while_reading(
    workspace: WorkspaceThread,
    door: Door,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    stated: int,
) -> None:
    """What streams is counted, whatever was said of it; nothing of it is kept, and the file beside it is."""
    monkeypatch.setattr(files, "SIZE_MAX", 10)
    state_size(monkeypatch, "big.txt", stated)
    root = served.thread()

    ts = workspace.say("alice", "agents", "see", root, files={"big.txt": "x" * 11, "small.txt": "x"})

    big, small = fetched(door, ts)
    assert (big.problem, big.path) == ("it has more than 10 bytes, the most that is taken", "")
    assert small.path
    assert list(door.kept) == [f"{ts}/2"]


@pytest.mark.parametrize("stated", [4, 6])
def test_a_file_of_another_size_than_is_stated_is_not_taken(
    workspace: WorkspaceThread, door: Door, served: Served, monkeypatch: pytest.MonkeyPatch, stated: int
) -> None:
    """Too few bytes or too many: it is not what somebody sent."""
    state_size(monkeypatch, "notes.txt", stated)
    root = served.thread()

    ts = workspace.say("alice", "agents", "see", root, files={"notes.txt": "x" * 5})

    [file] = fetched(door, ts)
    assert file.problem == f"5 bytes arrived, and Slack had stated {stated}"
    assert door.kept == {}


def state_size(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    """Let the workspace say of the file of that name that it has so many bytes."""
    view = shapes.file_view

    def stated(doc: dict[str, Any], base: str) -> dict[str, Any]:
        seen = view(doc, base)
        return seen | {"size": size} if doc["name"] == name else seen

    monkeypatch.setattr(shapes, "file_view", stated)


@pytest.mark.parametrize(
    ("url", "api", "workspace_url", "may"),
    [
        ("https://files.slack.com/files-pri/T1-F1/download/a", "https://slack.com/api/", "", True),
        ("https://acme.slack.com/files/a", "https://slack.com/api/", "https://acme.slack.com/", True),
        ("https://evil.slack.com/files/a", "https://slack.com/api/", "https://acme.slack.com/", False),
        ("https://files.slack-gov.com/a", "https://slack-gov.com/api/", "", True),
        ("http://files.slack.com/a", "https://slack.com/api/", "", False),
        ("https://files.slack.com:444/a", "https://slack.com/api/", "", False),
        ("https://files.slack.com@evil.org/a", "https://slack.com/api/", "", False),
        ("https://files.slack.com.evil.org/a", "https://slack.com/api/", "", False),
        ("https://me:pw@files.slack.com/a", "https://slack.com/api/", "", False),
        ("file:///etc/passwd", "https://slack.com/api/", "", False),
        ("https://evil.org/a", "https://slack.com/api/", "https://evil.org/", False),
        ("http://127.0.0.1:9/files/a", "http://127.0.0.1:9/api/", "", True),
        ("http://127.0.0.1:8/files/a", "http://127.0.0.1:9/api/", "", False),
        ("https://files.slack.com/a", "http://127.0.0.1:9/api/", "", False),
        ("https://[broken", "https://slack.com/api/", "", False),
        ("", "https://slack.com/api/", "", False),
    ],
)
def test_who_may_see_the_token(url: str, api: str, workspace_url: str, may: bool) -> None:
    """Slack's file host and the workspace's own, by https, or the loopback workspace itself."""
    assert may_carry_the_token(url, api, workspace_url) is may
