"""What goes through the exchange comes out as it went in, and what this release does not know is said to be unknown."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import ChannelError, CoreError, InvalidValue, UnknownSession
from core.base.values import replace
from core.fleet import envelope
from core.fleet.envelope import (
    AnswerBody,
    CallBody,
    Change,
    Facts,
    Failed,
    FetchFiles,
    Gap,
    Looking,
    Ordered,
    PostBody,
    Pressed,
    React,
    Read,
    Reply,
    ResultBody,
    Say,
    Show,
    SweptThread,
    Unreadable,
)
from core.model.asking import Button, Press
from core.model.channel import (
    IncomingChange,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    Posted,
    PrivateAnswer,
    Swept,
)
from core.model.message import Attachment, Fetched
from core.model.posts import Mark, NewPost, OutboundKind, OwnPost, ThreadSeen

text = st.text(st.characters(), max_size=20)  # with NUL, lone surrogates and what lies beyond the first plane
flag, number = st.booleans(), st.integers(0, 1 << 40)
maybe = st.none() | flag
attachment = st.builds(Attachment, text, text, text, number, text, text, flag)
files = st.lists(attachment, max_size=2).map(tuple)
reply = st.builds(IncomingReply, *[text] * 8, flag, flag, text, text, text, files, maybe, text, flag, text, flag, flag)
change = st.builds(IncomingChange, reply, flag, flag, st.none() | reply)
press = st.builds(IncomingPress, *[text] * 8, flag, text, text)
order = st.builds(IncomingOrder, *[text] * 6)
swept = st.builds(Swept, text, text, text, text, number, text, maybe)
button = st.builds(Button, st.sampled_from(Press), text, text, st.tuples(number, number), text)
post = st.builds(
    NewPost, text, text, st.sampled_from(OutboundKind), *[text] * 6,
    buttons=st.lists(button, max_size=2).map(tuple), edits=text, path=text, only_for=text, about=text, starts=text,
)  # fmt: skip
mark = st.sampled_from(Mark)
call: st.SearchStrategy[CallBody] = st.one_of(
    st.builds(Gap, text),
    st.builds(Looking, text, text),
    st.builds(SweptThread, text, text, swept),
    st.builds(Reply, reply),
    st.builds(Change, change),
    st.builds(Pressed, press),
    st.builds(Ordered, order),
)
handed: st.SearchStrategy[PostBody] = st.one_of(
    st.builds(Say, post, text, text, text, text, flag),
    st.builds(React, text, text, mark, st.lists(mark, max_size=3).map(tuple)),
    st.builds(Show, text, text, text),
    st.builds(Read, text, text),
    st.builds(FetchFiles, text, text, files),
)
failed = st.builds(Failed, text, text, text, flag, st.none() | st.floats(0, 1e6), flag, text)
answer: st.SearchStrategy[AnswerBody] = st.one_of(
    st.builds(PrivateAnswer, text, text, rows=st.lists(st.dictionaries(text, text)).map(tuple), terminal=text), failed
)
own = st.builds(OwnPost, *[text] * 5)
result: st.SearchStrategy[ResultBody] = st.one_of(
    st.none(),
    st.builds(Posted, *[text] * 4),
    st.builds(ThreadSeen, *[text] * 4, posts=st.lists(own, max_size=2).map(tuple)),
    st.lists(st.builds(Fetched, attachment, text, number, text, text), max_size=2).map(tuple),
    failed,
)


@given(call)
def test_a_call_comes_out_as_it_went_in(one: CallBody) -> None:
    """Every call, whatever is in its texts, is the same on its host; its body is plain ASCII without NUL."""
    kind, body = envelope.written_call(one)

    assert envelope.read_call(kind, body) == one
    assert body.isascii()
    assert "\0" not in body


@given(handed)
def test_a_post_comes_out_as_it_went_in(one: PostBody) -> None:
    """Every post is the same at the gateway."""
    assert envelope.read_post(*envelope.written_post(one)) == one


@given(answer)
def test_an_answer_comes_out_as_it_went_in(one: AnswerBody) -> None:
    """The answer to a press or a command is the same at the gateway."""
    assert envelope.read_answer(envelope.written_answer(one)) == one


@given(result)
def test_a_result_comes_out_as_it_went_in(one: ResultBody) -> None:
    """What became of a post is the same on its host."""
    assert envelope.read_result(envelope.written_result(one)) == one


@given(st.one_of(call.map(envelope.written_call), handed.map(envelope.written_post)), st.integers(2, 9))
def test_a_later_version_is_not_guessed_at(written: tuple[str, str], version: int) -> None:
    """A body of a version that this release does not know is told, with the kind, the version and the remedy."""
    kind, body = written
    later = json.dumps({**json.loads(body), "v": version})

    for read in (envelope.read_call, envelope.read_post):
        with pytest.raises(Unreadable, match=r"upgrade the-loop here|knows no such kind") as raised:
            read(kind, later)
        assert repr(kind) in str(raised.value)


@given(call)
def test_a_field_that_a_later_release_added_is_left_out(one: CallBody) -> None:
    """What is new within a version does not keep an earlier release from reading the rest."""
    kind, body = envelope.written_call(one)

    assert envelope.read_call(kind, json.dumps({**json.loads(body), "added": {"later": 1}})) == one


@pytest.mark.parametrize("body", ["", "[]", "null", "7", "{}", '{"v":1}', '{"v":1,"reply":{}}', "{" * 9000])
def test_what_is_no_body_is_unreadable(body: str) -> None:
    """Whatever stands in the database, reading it ends in one error."""
    for read in (envelope.read_answer, envelope.read_result):
        with pytest.raises(Unreadable):
            read(body)
    with pytest.raises(Unreadable):
        envelope.read_call("reply", body)
    with pytest.raises(Unreadable):
        envelope.read_post("say", body)


def test_every_kind_is_tried_here() -> None:
    """The strategies above make each kind of call and post that there is."""
    tried = {Gap, Looking, SweptThread, Reply, Change, Pressed, Ordered, Say, React, Show, Read, FetchFiles}

    assert {*get_args(CallBody), *get_args(PostBody)} == tried


@pytest.mark.parametrize(
    ("error", "kind"),
    [(UnknownSession("guide"), UnknownSession), (InvalidValue("no", "give another"), CoreError)],
)
def test_an_error_says_the_same_on_both_sides(error: CoreError, kind: type[CoreError]) -> None:
    """Whoever pressed or commanded reads the words that the host found."""
    found = envelope.read_answer(envelope.written_answer(envelope.failed(error)))

    assert isinstance(found, Failed)
    assert str(found.error()) == str(error)
    assert isinstance(found.error(), kind)


def test_a_channels_error_keeps_what_the_outbox_decides_by() -> None:
    """Whether it may be tried again, when, and why."""
    error = ChannelError("Slack: no", "wait", transient=True, retry_after=3.5, unclear=True, reason="shut_out")

    found = envelope.failed(error).channel_error()

    assert vars(found) == vars(error)


@given(st.none() | st.lists(text))
def test_members_come_out_as_they_went_in(members: list[str] | None) -> None:
    """Nobody is refused where it is not known who may write, or what stands there cannot be read."""
    found = envelope.read_members(envelope.written_members(members))

    assert found == (None if members is None else frozenset(members))
    assert envelope.read_members("no json") is None


@given(st.builds(Facts, text, text, flag, *[st.lists(text, max_size=3).map(tuple)] * 2))
def test_facts_come_out_as_they_went_in(facts: Facts) -> None:
    """What stands there and cannot be read is as if it were not there."""
    assert envelope.read_facts(envelope.written_facts(facts)) == facts
    for damaged in ("no json", "[]", "null", '{"waiting":1}'):
        assert envelope.read_facts(damaged) == Facts()


@given(reply)
def test_a_strangers_words_are_not_kept(one: IncomingReply) -> None:
    """Who wrote and where is all that a reply without words holds."""
    kept = envelope.without_words(one)

    assert (kept.text, kept.quoted, kept.files, kept.author_name) == ("", "", (), "")
    assert kept == replace(one, text="", quoted="", files=(), author_name="")
