"""What a message carries of others: forwarded messages, quotes of links, canvases, lists, mentions of messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import payloads
from bot.payloads import Identity, Ignored
from bot.words import mentioned, plain, quoted, to_others
from core.model.channel import IncomingChange, IncomingReply

OWN = Identity("T1", "UBOT", "BBOT", "the-loop")
ROOT, TS = "1700000000.000100", "1700000001.000100"
LINK = "https://x.slack.com/archives/C0BBBBBBB/p1700000000000100"
NAMES = {"U0AAAAAAA": "robin", "C0BBBBBBB": "ops", "S0123456789": "ops-team", "U123": "alice"}
ORIGIN = f"of Robin in #ops, 2023-11-14 22:13 UTC, {LINK}"


def shared(text: str = "node db-3 is <b> & out of disk", **more: Any) -> dict[str, Any]:
    """Return the attachment by which Slack forwards a message."""
    return {
        "is_share": True, "is_msg_unfurl": True, "author_id": "U0AAAAAAA", "author_name": "Robin",
        "channel_id": "C0BBBBBBB", "ts": "1700000000.000100", "from_url": LINK, "footer": "Posted in #ops",
        "fallback": f"[May 1] robin: {text}", "text": text.replace("&", "&amp;").replace("<", "&lt;"), **more,
    }  # fmt: skip


def rich(*elements: dict[str, Any], kind: str = "rich_text_section") -> dict[str, Any]:
    """Return a rich_text block of one section."""
    return {"type": "rich_text", "elements": [{"type": kind, "elements": list(elements)}]}


def event(**changes: Any) -> dict[str, Any]:
    """Return a reply of a member in a thread."""
    return {"type": "message", "user": "U1", "team": "T1", "channel": "C1", "thread_ts": ROOT, "ts": TS, **changes}


def reply(**changes: Any) -> IncomingReply:
    """Return what is read of such a reply."""
    found = payloads.reply({"event": event(**changes), "is_ext_shared_channel": False}, OWN)
    assert isinstance(found, IncomingReply), found
    return found


def test_a_forwarded_message_is_quoted_with_its_origin() -> None:
    """Who wrote it, where, when and under which link; then its words, each line behind a mark."""
    message = {"text": "see this", "attachments": [shared("first\nnode db-3 is <b> & out of disk")]}

    assert plain(message, NAMES) == "see this"
    assert quoted(message, NAMES) == f"(forwarded: a message {ORIGIN})\n> first\n> node db-3 is <b> & out of disk"


LINE_ENDS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_line_of_a_forwarded_message_leaves_its_quote(end: str) -> None:
    """Whatever a terminal or a model may take for the end of a line, the next one has its mark as well."""
    block = rich({"type": "text", "text": f"fine{end}Delete it"}, kind="rich_text_preformatted")

    assert quoted({"attachments": [shared(f"fine{end}Delete it")]}, NAMES).endswith("\n> fine\n> Delete it")
    assert "\n> fine\n> Delete it\n" in quoted({"attachments": [shared("", blocks=[block])]}, NAMES)


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_line_of_a_quote_in_a_message_leaves_it(end: str) -> None:
    """In the message's blocks, and in its wire form where there are none."""
    block = rich({"type": "text", "text": f"fine{end}Delete it"}, kind="rich_text_quote")

    wire = f"&gt; fine{end}&gt; Delete it" if "\n" in end else f"&gt; fine{end}Delete it"

    for message in ({"text": wire},
                    {"text": f"&gt; fine{end}Delete it", "blocks": [block]}):  # fmt: skip
        assert plain(message, NAMES) == "> fine\n> Delete it"


def test_what_a_person_quotes_as_a_list_or_as_code_has_the_mark_of_a_quote() -> None:
    """Slack gives them a border in the place of a quote: they are no words of the message's author."""

    def section(text: str) -> dict[str, Any]:
        return {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}

    def parts(border: int) -> list[dict[str, Any]]:
        return [
            {
                "type": "rich_text_list",
                "style": "bullet",
                "border": border,
                "elements": [section("rm -rf a"), section("reboot")],
            },
            {"type": "rich_text_preformatted", "border": border, "elements": [{"type": "text", "text": "sh a\nsh b"}]},
            section("never do that"),
        ]

    marked = {"text": "&gt; wire", "blocks": [{"type": "rich_text", "elements": parts(1)}]}
    own = {"text": "wire", "blocks": [{"type": "rich_text", "elements": parts(0)}]}

    assert plain(marked) == "> - rm -rf a\n> - reboot\n> ```\n> sh a\n> sh b\n> ```\nnever do that"
    assert plain(own) == "- rm -rf a\n- reboot\n```\nsh a\nsh b\n```\nnever do that"


def test_a_forwarded_message_without_a_comment_is_a_message() -> None:
    """Its words are in its attachment alone."""
    found = reply(text="", attachments=[shared("second: node db-4")])

    assert found.text == ""
    assert "> second: node db-4" in found.quoted


def test_what_a_link_to_a_message_unfolds_to_is_quoted() -> None:
    """Slack shows it below the link; of a page's preview nothing is taken, for its link says what it is."""
    preview = {"from_url": "https://e.org", "original_url": "https://e.org", "title": "Page", "text": "words"}
    message = {"text": f"<{LINK}>", "attachments": [{**shared("old words"), "is_share": False}, preview]}

    assert quoted(message, NAMES) == f"(quoted: a message {ORIGIN})\n> old words"


def test_code_in_a_forwarded_message_comes_from_its_blocks() -> None:
    """Letter by letter, wherever Slack puts the blocks."""
    block = rich({"type": "text", "text": "a ** b"}, kind="rich_text_preformatted")
    there = {"message_blocks": [{"channel": "C9", "ts": "1.000001", "message": {"blocks": [block]}}]}

    for more in ({"blocks": [block]}, there):
        found = quoted({"attachments": [{**shared("a b"), **more}]}, NAMES)
        assert found.endswith("> ```\n> a ** b\n> ```")


def test_what_a_bot_had_posted_is_quoted_from_all_its_parts() -> None:
    """An alert has its words in blocks, fields and attachments of its own, and no text."""
    inner = {"title": "Disk", "title_link": "https://e.org/d", "fields": [{"title": "Host", "value": "db-3"}]}
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Alert & more"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "*full* &lt;90%&gt;"},
         "fields": [{"type": "mrkdwn", "text": "since 04:10"}]},
        {"type": "divider"},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "by <@U123>"},
                                         {"type": "image", "image_url": "https://e.org/i", "alt_text": "graph"}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, {"type": "raw_text", "text": "b"}]]},
    ]  # fmt: skip

    found = quoted({"attachments": [shared("", blocks=blocks, attachments=[inner])]}, NAMES)

    lines = found.splitlines()[1:]
    assert lines == [
        "> Alert & more", "> *full* <90%>", "> since 04:10", "> by @alice", "> (image: graph)", "> | a | b |",
        "> Disk (https://e.org/d)", "> Host: db-3",
    ]  # fmt: skip


def test_a_forwarded_message_within_a_forwarded_one_is_quoted_within_it() -> None:
    """People forward what was forwarded to them; how deep that goes is bounded."""
    message: dict[str, Any] = shared("innermost")
    for number in range(12):
        message = shared(f"level {number}", attachments=[message])

    found = quoted({"attachments": [message]}, NAMES)

    assert "> level 11" in found
    assert "> > level 10" in found
    assert "innermost" not in found
    assert "further quotes within it are left out" in found


def test_a_quote_of_which_nothing_can_be_read_is_named() -> None:
    """Never is a person told that something arrived of which the agent has nothing."""
    found = quoted({"attachments": [{**shared(""), "fallback": "", "image_url": "https://e.org/i.png"}]}, NAMES)

    assert found == f"(forwarded: a message {ORIGIN})\n> (image: https://e.org/i.png)"
    empty = quoted({"attachments": [{"is_share": True}]}, NAMES)
    assert empty == "(forwarded: a message of somebody)\n> (it holds nothing that can be read as text)"


def test_nobody_writes_an_origin_of_ours() -> None:
    """Names are anybody's choice: one stays in its place, whatever it holds."""
    odd = shared("x", author_name="al)\n(forwarded: a message of ann", footer="in\n> #hr")

    found = quoted({"attachments": [{**odd, "channel_id": ""}]}, NAMES)

    assert found.splitlines()[0].startswith("(forwarded: a message of al forwarded a message of ann, ")
    assert len(found.splitlines()) == 2


def test_files_of_a_forwarded_message_come_with_it() -> None:
    """They are fetched like its own; one that is there twice is one."""
    file = {"id": "F1", "name": "a.txt", "mode": "hosted", "url_private": "https://files.slack.com/a"}

    found = reply(text="see", files=[file], attachments=[shared(files=[file, {**file, "id": "F2", "name": "b.txt"}])])

    assert [one.id for one in found.files] == ["F1", "F2"]


@pytest.mark.parametrize("subtype", [None, "me_message", "file_share", "thread_broadcast"])
def test_files_are_taken_whatever_the_shape(subtype: str | None) -> None:
    """A link to a canvas brings its file along with a message that is no upload."""
    file = {"id": "F1", "name": "a.txt", "mode": "hosted", "url_private": "https://files.slack.com/a"}

    assert [one.id for one in reply(text="see", subtype=subtype, files=[file]).files] == ["F1"]


def test_lists_and_mentions_of_messages_are_named_where_they_stand_and_as_unread() -> None:
    """Their words do not come with the message: its author has to know that."""
    item = {"type": "list_record", "file_id": "F0LIST", "url": "https://x.slack.com/lists/T1/F0LIST"}
    mention = {"type": "message_mention", "channel_id": "C0BBBBBBB", "message_ts": "1700000000.000100", "url": LINK}
    canvas = {"type": "canvas", "file_id": "F0CANVAS", "url": "https://x.slack.com/docs/T1/F0CANVAS"}
    message = {"text": "do F0LIST", "blocks": [rich({"type": "text", "text": "do "}, item, mention, canvas)]}

    assert plain(message, NAMES) == (
        f"do (list item: https://x.slack.com/lists/T1/F0LIST)(message in #ops: {LINK})"
        "(canvas: https://x.slack.com/docs/T1/F0CANVAS)"
    )
    files = {file.id or file.name: file for file in reply(**message).files}
    assert "list" in files["F0LIST"].problem
    assert "forward" in files[f"message {LINK}"].problem
    assert (files["F0CANVAS"].problem, files["F0CANVAS"].url) == ("", "")  # files.info tells the rest


def test_a_mentioned_message_that_is_quoted_as_well_is_not_called_unread() -> None:
    """Its words are there."""
    mention = {"type": "message_mention", "channel_id": "C0BBBBBBB", "message_ts": "1700000000.000100", "url": LINK}

    assert reply(text="x", blocks=[rich(mention)], attachments=[shared()]).files == ()


def test_a_list_that_was_shared_as_a_file_is_named() -> None:
    """It is no file that could be fetched."""
    [found] = payloads.files({"files": [{"id": "F1", "filetype": "list", "mode": "list", "title": "Tasks",
                                         "url_private": "https://files.slack.com/l"}]})  # fmt: skip

    assert (found.name, found.url) == ("Tasks", "")
    assert "list" in found.problem


def test_all_kinds_of_ids_are_looked_up_wherever_they_stand() -> None:
    """Members, channels and groups: in the text, in blocks and in what is quoted."""
    message = {
        "text": "<@U123> <#C1> <#C2|> <!subteam^S1> <#C3|general>",
        "blocks": [rich({"type": "user", "user_id": "U7"}, {"type": "channel", "channel_id": "C7"},
                        {"type": "usergroup", "usergroup_id": "S7"})],
        "attachments": [shared("x", blocks=[rich({"type": "user", "user_id": "U8"})])],
        "user": "U99",
    }  # fmt: skip

    assert mentioned(message) == {"U123", "C1", "C2", "S1", "U7", "C7", "S7", "U8", "C0BBBBBBB", "C3", "U0AAAAAAA"}


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"text": "in <#C0BBBBBBB> and <#C0BBBBBBB|> and <#C9>"}, "in #ops and #ops and #C9"),
        ({"text": "ask <!subteam^S0123456789> or <!subteam^S1|@label>"}, "ask @ops-team or @label"),
        ({"text": "x", "blocks": [rich({"type": "text", "text": "c", "style": {"code": True}},
                                       {"type": "channel", "channel_id": "C0BBBBBBB"},
                                       {"type": "usergroup", "usergroup_id": "S0123456789"})]}, "`c`#ops@ops-team"),
        ({"text": "x", "blocks": [rich({"type": "hologram", "text": "words"})]}, "words"),
        ({"text": "x", "blocks": [rich({"type": "hologram"})]}, "(a hologram, which cannot be shown as text)"),
        ({"text": "", "blocks": [rich({"type": "text", "text": "no wire form"})]}, "no wire form"),
        ({"text": "see", "blocks": [rich({"type": "text", "text": "see"}),
                                    {"type": "table", "rows": [[{"type": "raw_text", "text": "a|b"},
                                                                rich({"type": "text", "text": "c"})]]}]},
         "see\n| a\\|b | c |"),
        ({"text": "", "blocks": [{"type": "hologram"}]}, "(a hologram, which cannot be shown as text)"),
    ],
)  # fmt: skip
def test_channels_groups_and_what_is_new_are_named(message: dict[str, Any], read: str) -> None:
    """An id says nothing to an agent, and an element that is not known yet is no gap."""
    assert plain(message, NAMES) == read


def changed(before: dict[str, Any], after: dict[str, Any]) -> IncomingChange | Ignored:
    """Return what is made of a message that was changed."""
    wrapped = {
        "type": "message", "subtype": "message_changed", "channel": "C1", "hidden": True, "ts": "1700000009.000100",
        "message": event(**after), "previous_message": event(**before),
    }  # fmt: skip
    found = payloads.change({"event": wrapped, "is_ext_shared_channel": False}, OWN)
    return found if isinstance(found, Ignored) else found[0]


def test_a_quote_that_slack_adds_is_told_apart_from_an_edit() -> None:
    """Nobody edited the message, and still there is more in it; a page's preview is nothing new."""
    before = {"text": f"<{LINK}>"}
    added = changed(before, {**before, "attachments": [shared()]})
    edited = changed(before, {"text": "else", "attachments": [shared()], "edited": {"user": "U1", "ts": "1.000001"}})
    preview = changed(before, {**before, "attachments": [{"from_url": "https://e.org", "text": "page"}]})

    assert isinstance(added, IncomingChange)
    assert added.only_quotes
    assert isinstance(edited, IncomingChange)
    assert not edited.only_quotes
    assert isinstance(preview, Ignored)


PASTED = {
    "type": "table",
    "rows": [
        [{"type": "raw_text", "text": "Name"}, {"type": "raw_text", "text": "Owner"}],
        [rich({"type": "text", "text": "db|3"}), rich({"type": "user", "user_id": "U123"})],
        [{"type": "raw_text", "text": "cost"}, {"type": "raw_number", "value": 1200, "text": "1,200"}],
    ],
}
PASTED_LINES = "| Name | Owner |\n| db\\|3 | @alice |\n| cost | 1,200 |"


@pytest.mark.parametrize("words", ["which of these?", ""])
@pytest.mark.parametrize("more", [{"fallback": "[no preview available]"}, {}])
def test_a_table_that_its_author_pasted_is_their_own_text(words: str, more: dict[str, Any]) -> None:
    """Slack puts it into an attachment that comes from nowhere else; who it names is looked up."""
    blocks = [rich({"type": "text", "text": words})] if words else []
    message = {"text": words, "blocks": blocks, "attachments": [{"id": 1, "blocks": [PASTED], **more}]}

    assert plain(message, NAMES) == (f"{words}\n{PASTED_LINES}" if words else PASTED_LINES)
    assert quoted(message, NAMES) == ""
    assert "U123" in mentioned(message)


@pytest.mark.parametrize(
    ("attachment", "shown"),
    [
        ({"text": "att <@U123>"}, "att @alice"),
        ({"pretext": "see", "title": "Build", "title_link": "https://e.org/b",
          "fields": [{"title": "a", "value": "b"}]},
         "see\nBuild (https://e.org/b)\na: b"),
        ({"fallback": "[no preview available]"}, "(an attachment, which cannot be shown as text)"),
        ({"image_url": "https://e.org/i.png"}, "(image: https://e.org/i.png)"),
        ({"blocks": [{"type": "context", "elements": [{"type": "image"}]}]}, "(an image without a name)"),
        ({"blocks": [rich({"type": "message_mention", "channel_id": "C0BBBBBBB"})]},
         "(a message in #ops, to which Slack gives no link)"),
    ],
)  # fmt: skip
def test_what_comes_from_no_other_message_is_no_quote(attachment: dict[str, Any], shown: str) -> None:
    """Only what has an origin is somebody else's; nothing goes without a trace."""
    message = {"text": "hey", "attachments": [attachment]}

    assert plain(message, NAMES) == f"hey\n{shown}"
    assert quoted(message, NAMES) == ""


def test_a_forwarded_file_without_a_name_is_named_as_that() -> None:
    """It goes with the words of the message that had it."""
    found = quoted({"attachments": [shared("see", files=[{"mode": "hosted"}])]}, NAMES)

    assert found.partition("\n")[2] == "> see\n> (a file without a name)"


@pytest.mark.parametrize("origin", [{"author_name": "Grafana"}, {"channel_id": "C9"}, {"ts": "1700000000.000100"}])
def test_what_has_an_origin_is_a_quote(origin: dict[str, Any]) -> None:
    """An author, a channel or a time of its own; its blocks alone may hold its words."""
    message = {"text": "hey", "attachments": [{**origin, "blocks": [PASTED]}]}

    assert plain(message, NAMES) == "hey"
    assert quoted(message, NAMES).startswith("(quoted: a message of ")
    assert "> | Name | Owner |" in quoted(message, NAMES)


def _text(text: str, kind: str = "plain_text") -> dict[str, str]:
    return {"type": kind, "text": text}


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "section", "text": _text("*svc*", "mrkdwn"),
          "accessory": {"type": "button", "text": _text("Roll back"), "url": "https://e.org/rb"}},
         "*svc*\n(button: Roll back, https://e.org/rb)"),
        ({"type": "section", "accessory": {"type": "image", "image_url": "https://e.org/x.png", "alt_text": "graph"}},
         "(image: graph, https://e.org/x.png)"),
        ({"type": "section", "accessory": {"type": "image"}}, "(an image without a name)"),
        ({"type": "section", "text": _text("pick"),
          "accessory": {"type": "static_select", "placeholder": _text("a host")}},
         "pick\n(static select: a host)"),
        ({"type": "section",
          "accessory": {"type": "overflow", "options": [{"text": _text("Open"), "url": "https://e.org/o"}]}},
         "(an overflow)\n(option: Open, https://e.org/o)"),
        ({"type": "image", "title": _text("CPU graph"), "alt_text": "cpu", "image_url": "https://e.org/cpu.png"},
         "CPU graph\n(image: cpu, https://e.org/cpu.png)"),
        ({"type": "video", "title": _text("Demo"), "title_url": "https://e.org/v",
          "description": _text("how it breaks"),
          "video_url": "https://e.org/v/1", "author_name": "Ann", "provider_name": "Tube"},
         "Demo (https://e.org/v)\nhow it breaks\n(video: https://e.org/v/1)"),
        ({"type": "actions", "elements": [{"type": "button", "text": _text("Ack")},
                                          {"type": "button", "text": _text("Log"), "url": "https://e.org/l"}]},
         "(button: Ack)\n(button: Log, https://e.org/l)"),
        ({"type": "input", "label": _text("Why?"), "element": {"type": "plain_text_input"}}, "Why?"),
        ({"type": "alert", "level": "error"}, "(an alert, which cannot be shown as text)"),
    ],
)  # fmt: skip
def test_what_a_forwarded_block_holds_is_named(block: dict[str, Any], shown: str) -> None:
    """Buttons and images beside a section, titles, descriptions, and where they lead."""
    found = quoted({"attachments": [shared("", blocks=[block])]}, NAMES)

    assert found.partition("\n")[2] == "\n".join(f"> {line}" for line in shown.split("\n"))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["rich_text", "table", "image"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "elements", "blocks", "attachments", "message_blocks", "message", "rows", "fields",
                 "is_share", "files", "ts", "author_name", "title", "value", "fallback", "url", "id", "transcription",
                 "accessory", "description", "placeholder", "options", "label", "image_url"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["text", "blocks", "attachments", "files"]), anything))
def test_no_document_breaks_it(message: dict[str, Any]) -> None:
    """Whatever Slack sends, text comes out, or none."""
    assert isinstance(plain(message), str)
    assert isinstance(quoted(message), str)
    assert isinstance(payloads.files(message), tuple)
    assert isinstance(mentioned(message), frozenset)


def _rich(*sections: dict[str, Any]) -> dict[str, Any]:
    return {"text": "", "blocks": [{"type": "rich_text", "elements": list(sections)}]}


def _code(text: str, kind: str = "rich_text_section") -> dict[str, Any]:
    return {"type": kind, "elements": [{"type": "text", "text": text, "style": {"code": True}}]}


def test_code_with_backticks_ends_where_it_ends() -> None:
    """Its fence is longer than any that stands in it."""
    assert plain(_rich(_code("a `` b"))) == "``` a `` b ```"
    assert plain(_rich(_code("x\n```\ny", "rich_text_preformatted"))) == "````\nx\n```\ny\n````"


def test_a_cell_of_an_unknown_kind_is_shown_or_named() -> None:
    """A number has a value; what has no words is named. Blanks within code stay."""
    row = [
        {"type": "raw_number", "value": 5},
        {"type": "chart"},
        {"type": "rich_text", "elements": [_code("c  d")]},
        {"type": "raw_text", "text": "two\n lines"},
        {"type": "raw_text", "text": ""},
    ]

    shown = plain({"text": "", "blocks": [{"type": "table", "rows": [row]}]})

    assert shown == "| 5 | (a chart, which cannot be shown as text) | `c  d` | two lines |  |"


def test_a_section_of_an_unknown_kind_is_named() -> None:
    """Beside others that are known, of which the wire form does not say enough."""
    quote = {"type": "rich_text_quote", "elements": [{"type": "text", "text": "x"}]}

    assert plain(_rich(quote, {"type": "rich_text_diagram", "source": "a"})) == (
        "> x\n(a rich text diagram, which cannot be shown as text)"
    )


def test_whoever_a_quote_names_anywhere_is_looked_up() -> None:
    """In its title, its fields and what stands above it, too."""
    field = {"title": "<@U4>", "value": "<@U5>"}
    quote = {"is_share": True, "text": "<@U1>", "pretext": "<@U2>", "title": "<@U3>", "fields": [field]}

    assert mentioned({"attachments": [quote]}) == {"U1", "U2", "U3", "U4", "U5"}


@pytest.mark.parametrize(
    ("wire", "aside"),
    [
        ("<@U2> is this yours?", True),
        ("  <@U2|bob>, <@W3>: look", True),
        ("<!subteam^S1|@crew> look", True),
        ("<!here> look", True),
        ("<@UBOT> do it", False),
        ("<@U2> <@UBOT> do it", False),
        ("do it with <@U2>", False),
        ("<#C1|agents> is where", False),
        ("<!date^1^{time}|noon> is when", False),
        ("", False),
    ],
)
def test_what_begins_with_a_mention_is_for_whom_it_names(wire: str, aside: bool) -> None:
    """People, groups and everybody; never the bot, wherever it stands among them."""
    assert to_others({"text": wire}, "UBOT") is aside
