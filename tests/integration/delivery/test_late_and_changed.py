"""Late replies ask first; files are waited for; edits and deletions act on what still waits; lists narrow."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from core.base.errors import Refused, UnknownMessage
from core.base.names import new_uid
from core.chat.backfill import swept, threads
from core.chat.inbound import Changes, Inbound, NullMirror
from core.delivery.saying import cancel_message, confirm_message
from core.model.channel import IncomingChange, IncomingReply, Swept, Verdict
from core.model.message import Attachment, Fetched, InboxRow, MessageState, decoded, encoded, safe_name, told
from core.model.posts import OutboundKind
from core.model.reasons import Reason
from core.model.session import Binding, ChatBinding, SessionRecord
from core.session.attachments import fetched, keep_file
from core.session.sessions import Author, may_steer
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat
from tests.support.world import ACTOR, definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)
THREAD = "1700.000000"
FILE = Attachment("F1", "notes.txt", "text/plain", 3, "https://files.slack.com/F1")
REPLY = IncomingReply("slack", TEAM, HOME, THREAD, "1700.000100", "U1", "alice", TEAM, False, False, "plain", "do it")


@pytest.fixture
def chat() -> Chat:
    """Give a chat with one member on the list."""
    return Chat()


@pytest.fixture
def bound(system: System) -> System:
    """Give ports with a recorded session `scribe` that has a thread."""
    record = SessionRecord("scribe", new_uid(), definition("scribe"), T0, generation=2)
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(record)
    system.bindings.bind(Binding("slack", TEAM, HOME, THREAD, record.uid, "scribe", T0))
    return system


class Door:
    """What a channel calls for this, without the rest of the door."""

    def __init__(self, system: System, chat: Chat) -> None:
        self.receive = Inbound(system, chat.authorized, NullMirror()).receive
        self.change = Changes(system, chat.authorized).apply
        self.to_fetch = system.inbox.to_fetch
        self.keep_file = partial(keep_file, system)
        self.fetched = partial(fetched, system)
        self.threads = partial(threads, system.inbox, system.bindings, system.activities)
        self.swept = partial(swept, system)


@pytest.fixture
def door(bound: System, chat: Chat) -> Door:
    """Give core's end of a channel."""
    return Door(bound, chat)


def only(system: System) -> InboxRow:
    """Return the session's one message."""
    record = system.records.read("scribe")
    assert record is not None
    [row] = system.inbox.with_states(record.uid, frozenset(MessageState))
    return row


def notes(system: System) -> list[str]:
    """Return what threads are to be told next."""
    return [row.post.text for row in system.outbox.due("slack", datetime.max.replace(tzinfo=UTC))]


def change(**changes: object) -> IncomingChange:
    """Return an edit of the reply, or a deletion."""
    deleted = bool(changes.pop("deleted", False))
    return IncomingChange(replace(REPLY, **changes), deleted)  # type: ignore[arg-type]


# ---------------------------------------------------------------- quotes

QUOTE = "(quoted: a message of Robin)\n> the words"


def test_what_a_message_quotes_follows_its_own_words(door: Door, bound: System) -> None:
    """A message that only quotes is one, too."""
    door.receive([replace(REPLY, quoted=QUOTE)])
    with_comment = only(bound).message.text
    verdicts = door.receive([replace(REPLY, ts="1700.000200", text="", quoted=QUOTE)])

    assert with_comment == f"do it\n{QUOTE}"
    assert verdicts == (Verdict.COMMITTED,)


def test_a_quote_that_comes_later_joins_what_still_waits(door: Door, bound: System) -> None:
    """Nobody edited the message: it is one message with its quote."""
    door.receive([REPLY])

    late = door.change([IncomingChange(replace(REPLY, quoted=QUOTE), deleted=False, only_quotes=True)])

    assert late == ()
    assert only(bound).message.text == f"do it\n{QUOTE}"
    assert notes(bound) == []


def test_a_quote_that_comes_after_its_message_was_typed_follows_it(door: Door, bound: System) -> None:
    """As a reply of its own, once; it is not told as an edit that came too late."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.CONFIRMED)
    added = IncomingChange(replace(REPLY, quoted=QUOTE), deleted=False, only_quotes=True)

    verdicts = [door.receive(door.change([added])) for _ in range(2)]

    assert verdicts == [(Verdict.COMMITTED,), (Verdict.DUPLICATE,)]
    record = bound.records.read("scribe")
    assert record is not None
    later, first = bound.inbox.with_states(record.uid, frozenset(MessageState))
    assert first.message.text == "do it"
    assert later.message.text == f"(what the link in my message before this one leads to)\n{QUOTE}"
    assert later.message.address == first.message.address
    assert notes(bound) == []


def test_a_message_that_is_deleted_while_its_program_holds_it_is_told_as_that(door: Door, bound: System) -> None:
    """It may come back yet; each sweep finds it deleted, and tells of it once."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.ACCEPTED)

    for _ in range(2):
        door.change([change(deleted=True)])

    row = only(bound)
    assert (row.state, row.reason) == (MessageState.ACCEPTED, Reason.AUTHOR_DELETED)
    assert [note for note in notes(bound) if "You deleted your message" in note] == [
        "You deleted your message to `scribe` after it was typed. Its program has it already. If no turn takes it "
        "and it comes back, it is cancelled."
    ]


def test_a_deleted_message_takes_the_quote_that_follows_it_along(door: Door, bound: System) -> None:
    """What still waits of it is cancelled; of what was typed the thread is told."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.CONFIRMED)
    door.receive(door.change([IncomingChange(replace(REPLY, quoted=QUOTE), deleted=False, only_quotes=True)]))

    door.change([change(deleted=True)])

    record = bound.records.read("scribe")
    assert record is not None
    later, _ = bound.inbox.with_states(record.uid, frozenset(MessageState))
    assert later.state is MessageState.CANCELLED
    assert "You deleted your message" in notes(bound)[0]


def test_a_message_in_which_nothing_can_be_read_is_told(door: Door, bound: System) -> None:
    """Once, with what to do: a person would wait for an answer."""
    verdicts = [door.receive([replace(REPLY, text="\x07")]) for _ in range(2)]

    assert verdicts == [(Verdict.DROPPED,), (Verdict.DROPPED,)]
    assert notes(bound) == [
        "Your message contains nothing that could be read as text, so `scribe` did not get it. "
        "To do: write it in words, or attach it as a file."
    ]


def test_the_words_of_a_clip_are_quoted(door: Door, bound: System) -> None:
    """They are its author's, as a machine has heard them; where there are none that is said."""
    clip = replace(FILE, name="a.m4a", kind="audio/mp4", clip=True)

    with_words, without = told([Fetched(clip, "/p", 3, said="one\ntwo")]), told([Fetched(clip, "/p", 3)])

    assert with_words == ("(file: /p , audio/mp4, 3 bytes; said in it, as the chat has written it down:)\n> one\n> two")
    assert without == "(file: /p , audio/mp4, 3 bytes; the chat has not written down what is said in it)"
    assert decoded(encoded([clip])) == (clip,)
    assert decoded('[["F1", "a", "k", 1, "u", ""]]')[0].clip is False


# ---------------------------------------------------------------- notes to colleagues

NOTE = replace(REPLY, text="(( Bob, is this yours?", files=(FILE,))


def test_a_note_to_colleagues_is_kept_nowhere(door: Door, bound: System) -> None:
    """Neither what begins with the prefix nor what begins with a mention is a message; that is said once."""
    now = f"{bound.clock.now().timestamp():.6f}"
    mention = replace(REPLY, ts=now, text="@bob is this yours?", to_others=True)

    verdicts = [*door.receive([replace(NOTE, ts=now), mention]), *door.receive([NOTE])]

    record = bound.records.read("scribe")
    assert record is not None
    assert verdicts == [Verdict.DROPPED] * 3
    assert bound.inbox.with_states(record.uid, frozenset(MessageState)) == ()
    assert door.to_fetch("slack") == ()
    [post] = [row.post for row in bound.outbox.due("slack", datetime.max.replace(tzinfo=UTC))]
    assert (post.kind, post.only_for) == (OutboundKind.WHISPER, "U1")
    assert "begins with `((`" in post.text
    kept = bound.paths.database.parent.glob(f"{bound.paths.database.name}*")
    assert all(b"is this yours" not in path.read_bytes() for path in kept)


def test_nobody_but_who_may_steer_is_told_of_a_note(door: Door, bound: System) -> None:
    """Whoever is on no list writes to colleagues as before: no hint, and no refusal."""
    now = f"{bound.clock.now().timestamp():.6f}"
    door.receive([replace(NOTE, ts=now, author="U9"), replace(NOTE, ts=now, author="B1", is_bot=True)])

    assert notes(bound) == []
    assert not bound.bindings.was_refused(f"slack:{TEAM}:{HOME}:{now}")


def test_a_note_that_is_edited_into_a_message_is_taken(door: Door, bound: System) -> None:
    """It goes through every check, with its files, and once."""
    door.receive([NOTE])
    edit = IncomingChange(replace(REPLY, files=(FILE,)), deleted=False, before=NOTE)

    taken = [door.receive(door.change([edit])) for _ in range(2)]
    refused = door.receive(door.change([replace(edit, reply=replace(REPLY, author="U9", ts="1700.000200"))]))

    assert taken == [(Verdict.COMMITTED,), ()]
    assert refused == (Verdict.DROPPED,)
    assert [fetch.files for fetch in door.to_fetch("slack")] == [(FILE,)]


def test_a_message_that_is_edited_into_a_note_is_withdrawn(door: Door, bound: System) -> None:
    """While it waits; back again it cannot come, which is said. What was typed stays typed, and that is said, too."""
    door.receive([REPLY])
    door.change([change(text="(( never mind")])
    withdrawn = only(bound)
    door.change([change(text="do it after all")])

    assert (withdrawn.state, withdrawn.reason) == (MessageState.CANCELLED, Reason.MADE_ASIDE)
    assert withdrawn.message.text == "do it"
    assert ["send it again" in note for note in notes(bound)] == [True]


def test_a_typed_message_that_is_edited_into_a_note_stays_typed(door: Door, bound: System) -> None:
    """The sender is told so; a sweep that sees it as a note later does not say that the agent lacks it."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.CONFIRMED)

    door.change([change(text="(( never mind")])
    door.receive([replace(REPLY, text="(( never mind")])

    assert only(bound).state is MessageState.CONFIRMED
    assert ["The agent has the old text" in note for note in notes(bound)] == [True]


# ---------------------------------------------------------------- late


def test_a_late_reply_waits_for_a_word_and_says_how(door: Door, bound: System) -> None:
    """It is on the disk, its thread is told with the command, and it goes in once that was run."""
    verdicts = door.receive([replace(REPLY, confirm="sent 3 h ago")])
    waiting = only(bound)

    confirm_message(bound, waiting.message.id, ACTOR)

    assert verdicts == (Verdict.COMMITTED,)
    assert (waiting.state, waiting.detail) == (
        MessageState.QUEUED,
        "it needs confirmation, because it was sent 3 h ago",
    )
    assert f"`the-loop standing confirm {waiting.message.id}`" in notes(bound)[0]
    assert (only(bound).state, only(bound).detail) == (MessageState.QUEUED, f"confirmed by {ACTOR}")


def test_a_late_reply_can_be_cancelled_and_no_other_be_confirmed(door: Door, bound: System) -> None:
    """What does not wait for that is named with what it does."""
    door.receive([replace(REPLY, confirm="sent 3 h ago")])
    cancel_message(bound, only(bound).message.id, ACTOR)

    with pytest.raises(Refused, match="it is cancelled"):
        confirm_message(bound, only(bound).message.id, ACTOR)
    with pytest.raises(UnknownMessage):
        confirm_message(bound, "m-none", ACTOR)


# ---------------------------------------------------------------- files


def test_files_are_waited_for_and_named(door: Door, bound: System) -> None:
    """The row is committed with its list; what comes of it stands in the text, in the session's folder, 0600."""
    door.receive([replace(REPLY, files=(FILE,))])
    [fetch] = door.to_fetch("slack")
    held = only(bound).detail

    path = door.keep_file(fetch.message_id, 1, fetch.files[0].name, b"abc")
    door.fetched(fetch.message_id, [Fetched(FILE, path, 3)])

    row = only(bound)
    assert held == "its files are being downloaded"
    assert (row.state, row.detail) == (MessageState.QUEUED, "")
    assert row.message.text == f"do it\n(file: {path} , text/plain, 3 bytes)"
    assert Path(path).is_relative_to(bound.paths.session(row.message.uid))
    assert (Path(path).read_bytes(), Path(path).stat().st_mode & 0o777) == (b"abc", 0o600)
    assert door.to_fetch("slack") == ()


def test_a_file_alone_is_a_message_and_a_missing_one_is_told(door: Door, bound: System) -> None:
    """The agent reads why, and the thread too."""
    door.receive([replace(REPLY, text="", files=(FILE,))])
    [fetch] = door.to_fetch("slack")

    door.fetched(fetch.message_id, [Fetched(FILE, problem="it was deleted")])
    door.fetched(fetch.message_id, [Fetched(FILE, problem="another reason")])

    expected = "(a part of this message, notes.txt, could not be read: it was deleted)"
    assert only(bound).message.text == expected
    assert notes(bound) == [
        "`scribe` does not get all of your message. What could not be read: notes.txt: it was deleted. "
        "The rest of it goes in."
    ]


def test_a_recording_without_its_words_is_told(door: Door, bound: System) -> None:
    """Its sender believes that it was heard; a video in which nobody may speak says nothing."""
    voice = replace(FILE, name="a.m4a", kind="audio/mp4", clip=True)
    video = replace(FILE, id="F2", name="v.mp4", kind="video/mp4", clip=True)
    door.receive([replace(REPLY, text="", files=(voice, video))])
    [fetch] = door.to_fetch("slack")

    door.fetched(fetch.message_id, [Fetched(voice, "/p", 3), Fetched(video, "/q", 3)])

    [note] = notes(bound)
    assert "gets the recording (a.m4a) as a file only" in note
    assert "write them" in note


def test_a_late_reply_with_files_waits_for_both(door: Door, bound: System) -> None:
    """Confirmed before its files came it waits for them; they come before it is confirmed, and it waits on."""
    door.receive([replace(REPLY, confirm="sent 3 h ago", files=(FILE,))])
    confirm_message(bound, only(bound).message.id, ACTOR)
    between = only(bound).detail

    door.fetched(only(bound).message.id, [Fetched(FILE, "/p", 3)])

    assert between == "its files are being downloaded"
    assert only(bound).detail == ""


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("notes.txt", "1-notes.txt"),
        ("../../etc/passwd", "1-passwd"),
        ("..\\..\\boot.ini", "1-boot.ini"),
        ("a b\n\x1b[31mc.txt", "1-a_b_31mc.txt"),
        ("-rf", "1-rf"),
        (".bashrc", "1-bashrc"),
        ("größe.png", "1-größe.png"),
        ("", "1-file"),
        ("/", "1-file"),
        ("\u202egpj.exe", "1-gpj.exe"),
        ("$(reboot).sh", "1-reboot_.sh"),
    ],
)
def test_names_are_harmless(name: str, kept: str) -> None:
    """No path, no control character, no option, nothing hidden."""
    assert safe_name(name, 1) == kept


def test_a_long_name_keeps_its_ending() -> None:
    """File systems take 255 bytes; what the file is stays visible."""
    kept = safe_name("ü" * 300 + ".tar.gz", 1)

    assert len(kept.encode()) < 90
    assert kept.endswith(".gz")


def test_a_kind_that_is_none_is_not_relayed() -> None:
    """The media type is somebody's word, too."""
    assert "unknown type" in told([Fetched(replace(FILE, kind="] rm -rf ["), "/p", 1)])


# ---------------------------------------------------------------- edits and deletions


def test_an_edit_replaces_what_waits(door: Door, bound: System) -> None:
    """The new text goes in; a claim that was made by the old one no longer holds."""
    door.receive([REPLY])
    before = only(bound)

    door.change([change(text="do that")])

    row = only(bound)
    assert (row.message.text, row.state) == ("do that", MessageState.PENDING)
    with pytest.raises(Refused):
        bound.inbox.advance(before, MessageState.CLAIMED)


def test_an_edit_keeps_what_was_said_of_files(door: Door, bound: System) -> None:
    """The lines about files are not the author's to edit."""
    door.receive([replace(REPLY, files=(FILE,))])
    door.fetched(only(bound).message.id, [Fetched(FILE, "/p", 3)])

    door.change([change(text="do that")])

    assert only(bound).message.text == "do that\n(file: /p , text/plain, 3 bytes)"


def test_a_deletion_cancels_what_waits(door: Door, bound: System) -> None:
    """Nothing of it reaches the agent."""
    door.receive([REPLY])

    door.change([change(deleted=True, text="")])

    assert (only(bound).state, only(bound).detail) == (MessageState.CANCELLED, "its author deleted it")
    assert notes(bound) == []


@pytest.mark.parametrize(("changes", "word"), [({"text": "do that"}, "edited"), ({"deleted": True}, "deleted")])
def test_what_was_typed_stays_and_is_told_once(
    door: Door, bound: System, changes: dict[str, object], word: str
) -> None:
    """However often it is edited; an edit that changes nothing is none."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.CONFIRMED)

    door.change([change(), change(**changes), change(**changes)])
    door.change([change(**changes)])

    assert only(bound).message.text == "do it"
    [note] = notes(bound)
    assert f"You {word} your message to `scribe` after it was typed" in note


@pytest.mark.parametrize("by", [{"author": "U9"}, {"is_bot": True}, {"is_self": True}, {"ts": "1700.000999"}])
def test_nobody_else_edits_it(door: Door, bound: System, by: dict[str, object]) -> None:
    """Nor does an edit of what never was a message become one."""
    door.receive([REPLY])

    door.change([change(text="rm -rf", **by)])

    assert only(bound).message.text == "do it"


def test_an_author_who_was_taken_off_the_list_edits_nothing(door: Door, bound: System, chat: Chat) -> None:
    """The list that holds now is asked."""
    door.receive([REPLY])
    chat.members.clear()

    door.change([change(text="rm -rf")])

    assert only(bound).message.text == "do it"


# ---------------------------------------------------------------- who


def listed(system: System, users: tuple[str, ...] | None) -> None:
    """Give the session a list of its own."""
    record = system.records.read("scribe")
    assert record is not None
    chat = {"slack": ChatBinding(True, "", users)}
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(replace(record, definition=replace(record.definition, chat=chat)))


@pytest.mark.parametrize(
    ("users", "author", "may"),
    [
        (None, "U1", True),
        (("U1",), "U1", True),
        (("U2",), "U1", False),
        ((), "U1", False),
        (("U9",), "U9", False),
        (None, "", False),
    ],
)
def test_a_sessions_list_narrows_and_never_widens(
    system: System, chat: Chat, users: tuple[str, ...] | None, author: str, may: bool
) -> None:
    """null: the channel's; []: nobody; others: who is on both."""
    record = SessionRecord("created", new_uid(), definition("created", slack=True), T0)
    record = replace(record, definition=replace(record.definition, chat={"slack": ChatBinding(True, "", users)}))
    with system.locks.hold("created", "test", 1.0):
        system.records.write(record)

    steers = partial(may_steer, system.settings, system.records, chat.authorized)
    assert steers("created", Author("slack", author)) is may
    assert steers("nobody-knows-it", Author("slack", "U1")) is False
    elsewhere = steers("created", Author("line", author))  # it says nothing of that chat
    assert elsewhere is (users is None and chat.authorized(author))


def test_an_outsider_who_is_named_with_the_team_may_steer(door: Door, bound: System, chat: Chat) -> None:
    """By that form alone: the same id without it is somebody else."""
    chat.members.add("T9:U9")
    outsider = replace(REPLY, author="T9:U9", author_team="T9")

    verdicts = door.receive([outsider, replace(REPLY, ts="1700.000200", author="U9", author_team="T9")])

    assert verdicts == (Verdict.COMMITTED, Verdict.DROPPED)
    assert only(bound).message.actor == "slack:T9:U9"


def test_what_was_refused_is_not_taken_by_a_later_sweep(door: Door, chat: Chat) -> None:
    """Whoever is let in says it again: nobody may be surprised by what they said before."""
    stranger = replace(REPLY, author="U9")
    door.receive([stranger])
    chat.members.add("U9")

    again = door.receive([stranger, replace(stranger, ts="1700.000200")])

    assert again == (Verdict.DROPPED, Verdict.COMMITTED)


def test_an_author_whose_team_nobody_knew_is_not_refused_for_good(door: Door) -> None:
    """users.info failed at first sight; the sweep knows."""
    door.receive([replace(REPLY, author_team="")])

    assert door.receive([REPLY]) == (Verdict.COMMITTED,)


def test_a_channel_that_was_shared_since_is_not_read(door: Door, bound: System) -> None:
    """Its thread is unbound and told so, once; that nobody knows is no change."""
    first = door.receive([replace(REPLY, shared=False), replace(REPLY, ts="1700.000101")])

    later = door.receive([replace(REPLY, ts=f"1700.00020{n}", shared=True) for n in range(2)])
    back = door.receive([replace(REPLY, ts="1700.000300", shared=False)])

    assert first == (Verdict.COMMITTED, Verdict.COMMITTED)
    assert (later, back) == ((Verdict.DROPPED, Verdict.DROPPED), (Verdict.DROPPED,))
    [note] = notes(bound)
    assert "was shared with another organization after" in note
    assert "`the-loop standing announce scribe`" in note
    assert bound.paths.events.read_text().count('"channel.unbound"') == 1


def test_a_sweep_finds_that_a_channel_is_shared_no_more(door: Door, bound: System) -> None:
    """Nobody has to write for that."""
    done = Swept(HOME, THREAD, "1700.000300", "1100.000000", 0, "", True)
    door.swept("slack", TEAM, done)

    door.swept("slack", TEAM, replace(done, shared=False))

    assert door.threads("slack", TEAM) == ()
    assert "stopped being shared" in notes(bound)[0]


# ---------------------------------------------------------------- sweeps


def test_a_sweep_moves_the_cursor_forward_only_and_tells_once(door: Door, bound: System) -> None:
    """It begins at the root; what was caught up stands in the thread in one line, and in the log."""
    [thread] = door.threads("slack", TEAM)
    done = Swept(HOME, THREAD, "1700.000300", "1100.000000", 3, "14 min", False)

    door.swept("slack", TEAM, done)
    door.swept("slack", TEAM, done)
    door.swept("slack", TEAM, replace(done, cursor="1700.000200", caught_up=0))

    [after] = door.threads("slack", TEAM)
    assert (thread.name, thread.cursor, thread.shared) == ("scribe", THREAD, None)
    assert (after.cursor, after.shared) == ("1700.000300", False)
    assert notes(bound) == [
        "3 replies were read late (the oldest is 14 min old), because the-loop was not reading when they were sent."
    ]
    assert '"channel.backfilled"' in bound.paths.events.read_text()
    assert door.threads("slack", "T9") == ()


def test_threads_are_swept_newest_first(door: Door, bound: System) -> None:
    """The session that somebody spoke with last is the one they wait for."""
    for number, name in enumerate(("older", "newer"), start=1):
        uid = new_uid()
        bound.bindings.bind(Binding("slack", TEAM, HOME, f"1600.00000{number}", uid, name, T0))
        with bound.database.transaction(durable=False):
            bound.activities.touch_message(uid, T0.replace(hour=number))

    assert [thread.name for thread in door.threads("slack", TEAM)] == ["newer", "older", "scribe"]


def test_a_sweep_is_told_which_replies_a_change_still_counts_for(door: Door, bound: System) -> None:
    """Those that wait, and apart from them the latest of the others; those of another thread are none of its."""
    elsewhere = Binding("slack", TEAM, HOME, "1650.000000", new_uid(), "newer", T0)
    bound.bindings.bind(elsewhere)
    door.receive([replace(REPLY, ts=f"1700.00010{number}") for number in (1, 2, 3)])
    record = bound.records.read("scribe")
    assert record is not None
    typed, cancelled = bound.inbox.unsettled(record.uid)[:2]
    bound.inbox.advance(typed, MessageState.CONFIRMED)
    cancel_message(bound, cancelled.message.id, ACTOR)

    found = {thread.thread: (thread.waiting, thread.taken) for thread in door.threads("slack", TEAM)}

    assert found == {THREAD: (("1700.000103",), ("1700.000101", "1700.000102")), "1650.000000": ((), ())}


def test_what_every_sweep_finds_changed_is_told_once(door: Door, bound: System) -> None:
    """A message that was typed and then deleted stays in reach of several sweeps: one note, one line in the log."""
    door.receive([REPLY])
    bound.inbox.advance(only(bound), MessageState.CONFIRMED)

    for _ in range(3):
        door.change([change(deleted=True, author="", text="")])

    [note] = notes(bound)
    assert "You deleted your message" in note
    assert bound.paths.events.read_text().count('"too-late"') == 1
