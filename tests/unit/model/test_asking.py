"""Requests: what is read of a tool's input, what a typed text answers, what people are shown."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.buttons import SECTION_MAX
from bot.markdown import wire
from core.base.redaction import Redactor
from core.base.text import visible
from core.model.asking import (
    NEEDS,
    Option,
    Press,
    Question,
    Request,
    RequestKind,
    RequestState,
    Role,
    Unseen,
    asked_of,
    buttons_of,
    ended_text,
    fenced,
    questions_of,
    rules_of,
    screen_of,
    text_of,
    understand,
    view_of,
)
from core.model.posts import NewPost, OutboundKind

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COLOURS = Question("Which?", (Option("red"), Option("Dark Blue"), Option("3")), several=False)


def request(kind: RequestKind = RequestKind.PERMISSION, **changes: Any) -> Request:
    """Return an open request."""
    made = Request("q-1", "k", "s-1", "scribe", "i-1", "main", kind, NOW, NOW + timedelta(minutes=10), tool="Bash")
    return replace(made, **changes)


def seen(given_input: dict[str, Any], missing: int = 0, tool: str = "Bash") -> tuple[str, Unseen]:
    """Return what is shown of a tool's input, secrets taken out."""

    def hide(text: str) -> tuple[str, int, int]:
        redacted = Redactor().counted(text, asked=True)
        return redacted.text, redacted.count, redacted.characters

    return view_of(tool, given_input, hide, missing)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("1", "red"),
        (" 2. ", "Dark Blue"),
        ("2)", "Dark Blue"),
        ("dark  blue", "Dark Blue"),
        ("3", "3"),
        ("4", "4"),
        ("0", "0"),
        ("1, 2", "1, 2"),
        ("neither, thanks", "neither, thanks"),
        ("²", "²"),
    ],
)
def test_a_typed_text_is_a_number_a_label_or_itself(typed: str, answer: str) -> None:
    """What names no option is an answer in the person's own words."""
    assert understand(COLOURS, typed) == answer


@pytest.mark.parametrize(
    ("typed", "answer"), [("1, 3", "red, 3"), ("3 1", "3, red"), ("1,1", "red"), ("1, 9", "1, 9"), ("2", "Dark Blue")]
)
def test_several_options_are_chosen_by_numbers(typed: str, answer: str) -> None:
    """All of them must be options; else it is the person's own text."""
    assert understand(replace(COLOURS, several=True), typed) == answer


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_any_line_is_read_without_a_fault(anything: Any) -> None:
    """Whatever a client says, it is a request or none."""
    line = anything if isinstance(anything, dict) else {"op": "ask", "instance": "i", "key": "k", "input": anything}

    found = asked_of(line)

    assert found is None or found.key


@given(st.dictionaries(st.text(max_size=20), st.text() | st.integers() | st.lists(st.text()), max_size=8))
def test_a_view_is_short_and_total(given_input: dict[str, Any]) -> None:
    """A tool's input is never shown at a length that a message cannot hold."""
    assert len(seen(given_input)[0]) < 2_900


def test_a_view_of_very_much_is_short() -> None:
    """However many values there are, and however a chat writes them."""
    shown, unseen = seen({f"k{n}": "&<>" * 100 for n in range(5_000)})

    assert len(shown) + 4 * sum(map(shown.count, "&<>")) < 2_300
    assert unseen.missing > 1_400_000


@pytest.mark.parametrize("letter", ["&", "<", "`", "x", "\u202e", "\U0001f600", "```\n"])
def test_the_longest_permission_fits_into_a_message_with_buttons(letter: str) -> None:
    """Else a chat cuts it, and the buttons stand below half of it."""
    given = {"command": letter * 30_000, "other": letter * 30_000, "third": f"xoxb-1-2-abc {letter}"}
    detail, unseen = seen(given, missing=10**6)
    asked = request(detail=detail, unseen=unseen, tool="t" * 200, name="n" * 40)
    made = NewPost("p", "k", OutboundKind.REQUEST, "s", asked.name, "slack", text_of(asked))

    assert len(wire(made)) <= SECTION_MAX


def test_what_is_left_out_is_counted() -> None:
    """Nobody approves what they take to be all of it."""
    shown, unseen = seen({"command": "x" * 50_000, "description": "harmless"}, missing=7)
    post = text_of(request(detail=shown, unseen=unseen))

    assert "48,600 more characters are left out" in shown
    assert "harmless" not in shown
    assert "**48,607 characters left out**: look at the terminal first" in post
    assert post.index("look at the terminal first") < post.index("```")


def test_of_a_long_screen_the_middle_is_left_out_and_counted() -> None:
    """The choices stand at the end; that its beginning may be missing is said, too."""
    text = "rm -rf /data\n" + "harmless " * 400 + "\n❯ Yes\n  No"

    detail, unseen = screen_of(text, lambda shown: (shown, 0, 0), headless=True)
    post = text_of(request(RequestKind.DIALOG, detail=detail, unseen=unseen))

    assert detail.startswith("rm -rf /data")
    assert detail.endswith("❯ Yes\n  No")
    assert unseen.missing == len(text) - len(detail) + len(
        f"… [{unseen.missing:,} more characters are left out: look at the terminal]"
    )
    assert f"**{unseen.missing:,} characters left out**: look at the terminal first" in post
    assert "**Its beginning may have scrolled off the screen**: look at the terminal first" in post


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("\n" * 1300 + "rm -rf ~", "\n[1,299 empty lines]\nrm -rf ~"),
        ("ls;" + " " * 900 + "rm -rf ~", "ls; [900 blanks] rm -rf ~"),
    ],
)
def test_nothing_stands_far_behind_blanks(command: str, shown: str) -> None:
    """Their number stands for them, and is said above."""
    detail, unseen = seen({"command": command})

    assert detail == shown
    assert unseen.blanks in (1299, 900)
    assert any("replaced by a count" in said for said in unseen.said())


def test_how_much_a_client_left_out_is_a_part_of_what_is_asked() -> None:
    """Nobody joins a request that says less of it."""
    line = {"instance": "i-1", "key": "k", "tool": "Bash", "input": {"command": "ls"}, "whole": "x"}

    first, second = asked_of(line), asked_of({**line, "missing": 950_000})

    assert first is not None
    assert second is not None
    assert first.digest != second.digest


def test_what_looks_like_a_secret_is_counted_and_nothing_else_hides_behind_it() -> None:
    """An unclosed key, a variable that is called a token: the command stays to be seen."""
    command = f"export TOKEN={'Ab3' * 12}\ntoken=/tmp/a.sh; sh $token\necho '-----BEGIN PRIVATE KEY-----'\nrm -rf ~"
    shown, unseen = seen({"command": command, "env": {"password": "hunter2hunter2"}})
    post = text_of(request(detail=shown, unseen=unseen))

    assert shown == command.replace("Ab3" * 12, "[redacted]") + '\nenv: {"password": "[redacted]"}'
    assert (unseen.values, unseen.characters) == (2, 36 + 14)
    assert "**2 values that look like secrets are hidden** (50 characters): look at the terminal first" in post


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("echo ok\u202e# txt.sh", "echo ok\\u202e# txt.sh"),
        ("rm -rf ~\x1b[2K\recho ok", "rm -rf ~\\x1b[2K\\x0decho ok"),
        ("rm -rf ~\b\b\bls", "rm -rf ~\\x08\\x08\\x08ls"),
        ("rm -rf /ho\u200bme", "rm -rf /ho\\u200bme"),
        ("rm\u00a0-rf", "rm\\xa0-rf"),
        ("ls\u2028rm", "ls\\u2028rm"),
        ("a\U000e0041\ufeff\u3164\u2066\x9b\x00\ud800", "a\\U000e0041\\ufeff\\u3164\\u2066\\x9b\\x00\\ud800"),
    ],
)
def test_what_cannot_be_seen_is_written_as_an_escape(typed: str, shown: str) -> None:
    """Nothing turns a line round, rubs it out or hides in it; how much there was is said."""
    detail, unseen = seen({"command": typed})
    post = text_of(request(detail=detail, unseen=unseen, tool=f"Bash{typed[-1]}"))

    assert detail == shown
    assert shown in post
    assert unseen.escaped == sum(letter not in shown for letter in typed)
    assert f"{unseen.escaped} character" in post
    assert "such as `\\u202e`" in post
    asked = request(RequestKind.QUESTION, questions=(Question(typed, (Option(typed, f"{typed}!"),)),))
    assert text_of(asked).count(shown) == 3
    assert buttons_of(asked)[0].label == f"1. {shown}"


@given(st.text())
def test_all_that_can_be_seen_is_shown_as_it_is(text: str) -> None:
    """Letters of every writing, and emoji with what belongs to them."""
    kept = "".join(letter for letter in text if unicodedata.category(letter)[0] not in "CZM")

    assert visible(f"⚠️ 👩‍💻 é {kept}\t\n") == (f"⚠️ 👩‍💻 é {kept}\t\n", 0)


def test_no_line_of_a_value_is_taken_for_another_value() -> None:
    """A file's text that looks like a second path stands further in."""
    shown, _ = seen({"file_path": "/home/ann/.bashrc", "content": "a\nfile_path: /tmp/x"})

    assert shown.splitlines() == ["file_path: /home/ann/.bashrc", "content: a", "  file_path: /tmp/x"]


def test_only_what_a_tool_does_not_act_on_is_left_unsaid() -> None:
    """The shell's description is the model's own words; elsewhere it may be what the tool is told to write."""
    given = {"command": "make", "description": "text"}

    assert [seen(given, tool=tool)[0] for tool in ("Bash", "mcp__tracker__file")] == ["make", "make\ndescription: text"]


@given(st.text(alphabet="`ab\n"))
def test_nothing_in_a_fence_ends_it(text: str) -> None:
    """A tool's input cannot speak to people in our name."""
    lines = fenced(text).split("\n")

    assert lines[0] == lines[-1]
    assert lines[0] not in text


def test_a_permission_is_shown_with_two_buttons_and_then_without() -> None:
    """The buttons carry the id alone."""
    asked = request(detail="rm -rf build")
    over = replace(asked, state=RequestState.ANSWERED, allowed=True, by="alice", settled_at=NOW)

    assert [(button.action, button.target) for button in buttons_of(asked)] == [("allow", "q-1"), ("deny", "q-1")]
    assert "rm -rf build" in text_of(asked)
    assert buttons_of(over) == ()
    assert f"**Allowed** by alice, {NOW:%Y-%m-%d} 12:00:00 UTC" in ended_text(over)


def test_questions_are_shown_one_after_another() -> None:
    """The buttons name the question that they answer, so that a stale one is known."""
    second = Question("How big?", (Option("small"), Option("large")))
    asked = request(RequestKind.QUESTION, questions=(COLOURS, second), answers=("red",))

    assert "(2 of 2): How big?" in text_of(asked)
    assert [button.action for button in buttons_of(asked)] == ["option-1-0", "option-1-1"]
    assert "→ red" in ended_text(replace(asked, state=RequestState.GONE, reason="it ended"))


def test_questions_that_cannot_be_understood_are_a_permission() -> None:
    """Then the dialog is allowed or denied, or answered at the terminal."""
    broken = {"questions": [{"question": "a?", "options": []}, "b?"]}
    line = {"op": "request", "instance": "i", "key": "k", "tool": "AskUserQuestion", "input": broken}

    found = asked_of(line)

    assert questions_of(broken) == ()
    assert found is not None
    assert found.kind is RequestKind.PERMISSION


def test_every_button_names_who_may_press_it() -> None:
    """Decisions are the approvers'; starts, ends and new conversations the operators'; the rest the members'."""
    assert set(NEEDS) == set(Press)
    assert {press for press, role in NEEDS.items() if role is Role.OPERATOR} == {
        *(Press.START, Press.START_AND_SEND, Press.BRING_UP, Press.STOP, Press.RESTART, Press.ANEW)
    }
    assert {press for press, role in NEEDS.items() if role is Role.APPROVER} == {
        *(Press.ALLOW, Press.DENY, Press.REMEMBER, Press.OPTION, Press.CHOOSE)
    }


def test_where_no_reply_is_read_none_is_asked_for() -> None:
    """A question then names the terminal as the place of its answer; elsewhere a reply, whatever buttons there are."""
    asked = request(RequestKind.QUESTION, questions=(COLOURS,))

    assert "_Reply with its number, or in your own words._" in text_of(asked)
    assert (
        text_of(asked, "`attach`").splitlines()[-1]
        == "_Replies are not read here: answer it at its terminal, `attach`._"
    )


def test_a_long_question_is_answered_under_its_whole_text() -> None:
    """Who asked looks its answer up by the question, and by the label, as they were put; people are shown less."""
    text, label = "why? " * 400, "because " * 100
    given = {"questions": [{"question": text, "options": [{"label": label}, {"label": "no"}]}]}
    line = {"op": "request", "instance": "i", "key": "k", "tool": "AskUserQuestion", "input": given}

    found = asked_of(line)

    assert found is not None
    [question] = found.questions
    assert (question.text, question.options[0].label) == (text, label)
    shown = text_of(request(RequestKind.QUESTION, questions=found.questions))
    assert len(shown) < 2000
    assert "more characters are left out" in shown


def test_whatever_is_cut_for_people_has_a_mark() -> None:
    """So that nobody takes it for all, and a secret that was cut is known for one."""
    long = Question("q" * 2000, (Option("l" * 500, "d" * 500),))
    asked = request(RequestKind.QUESTION, questions=(long,))

    open_post, ended_post = text_of(asked), ended_text(replace(asked, state=RequestState.GONE, reason="it ended"))

    assert (open_post.count("…"), ended_post.count("…")) == (3, 1)
    assert not any(run in open_post for run in ("q" * 1001, "l" * 201, "d" * 301))
    assert "q" * 1001 not in ended_post


def test_an_option_that_its_description_repeats_is_shown_once() -> None:
    """`yes`, described as `Yes`, says no more than `yes`."""
    question = Question("Go on?", (Option("yes", "Yes "), Option("no", "leave it")), several=False)

    lines = text_of(request(RequestKind.QUESTION, questions=(question,))).splitlines()

    assert lines[1:3] == ["1. yes", "2. no — leave it"]


def rule(content: str | None = None, tool: str = "Bash") -> dict[str, Any]:
    """Return a rule as Claude Code offers it."""
    return {"toolName": tool, **({} if content is None else {"ruleContent": content})}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([rule("curl:*")], ("Bash(curl:*)",)),
        ([rule("git add:*"), rule(tool="WebFetch")], ("Bash(git add:*)", "WebFetch")),
        ([], ()),
        (None, ()),
        ("Bash", ()),
        ([rule("curl:*"), "Bash"], ()),
        ([{**rule("curl:*"), "more": 1}], ()),
        ([rule("x" * 80)], ()),
        ([rule("a" * 25), rule("b" * 25)], ()),
        ([rule("rm \u202e:*")], ()),
        ([rule("two\nlines")], ()),
        ([rule("two  blanks")], ()),
        ([rule("a`b")], ()),
        ([{"toolName": "", "ruleContent": "x"}], ()),
        ([{"toolName": "Bash", "ruleContent": 7}], ()),
    ],
)
def test_what_would_be_remembered_is_offered_only_if_it_is_shown_whole(given: Any, shown: tuple[str, ...]) -> None:
    """Whoever presses must see all that they allow from then on."""
    assert rules_of(given) == shown


def test_allow_and_remember_says_what_it_remembers_and_only_approvers_press_it() -> None:
    """The end of the request says it again; a plain Allow remembers nothing."""
    line = {"op": "request", "instance": "i-1", "key": "k", "tool": "Bash", "input": {"command": "curl x"}}
    asked = asked_of({**line, "rules": [rule("curl:*")]})
    assert asked is not None
    opened = request(rules=asked.rules)
    buttons = buttons_of(opened)
    answered = replace(opened, state=RequestState.ANSWERED, allowed=True, by="ann", settled_at=NOW)

    assert [button.label for button in buttons] == ["Allow", "Allow and remember Bash(curl:*)", "Deny"]
    assert buttons[1].role is Role.APPROVER
    assert "Until its program ends, it does not ask again for `Bash(curl:*)`." in ended_text(
        replace(answered, answers=("remembered",))
    )
    assert "ask again" not in ended_text(answered)
    assert asked_of({**line, "op": "ask", "input": {"questions": []}, "rules": [rule("x")]}) is None
