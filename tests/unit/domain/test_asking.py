"""Requests: what is read of a tool's input, what a typed text answers, what people are shown."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.asking import (
    Option,
    Question,
    Request,
    RequestKind,
    RequestState,
    asked_of,
    buttons_of,
    ended_text,
    fenced,
    questions_of,
    text_of,
    understand,
    view_of,
)
from core.domain.buttons import NEEDS, Press, Role

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COLOURS = Question("Which?", (Option("red"), Option("Dark Blue"), Option("3")), several=False)


def request(kind: RequestKind = RequestKind.PERMISSION, **changes: Any) -> Request:
    """Return an open request."""
    made = Request("q-1", "k", "s-1", "scribe", "i-1", "main", kind, NOW, NOW + timedelta(minutes=10), tool="Bash")
    return replace(made, **changes)


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
    assert len(view_of(given_input)) < 2_300


def test_what_is_left_out_is_counted() -> None:
    """Nobody approves what they take to be all of it."""
    shown = view_of({"command": "x" * 5_000, "description": "harmless"})

    assert "3,600 more characters are left out" in shown
    assert "harmless" not in shown


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
    assert "**Allowed** by alice, 12:00:00 UTC" in ended_text(over)


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
    """Decisions are the approvers', starts the operators', the rest the members'."""
    assert set(NEEDS) == set(Press)
    assert {press for press, role in NEEDS.items() if role is Role.OPERATOR} == {Press.START, Press.START_AND_SEND}
    assert {press for press, role in NEEDS.items() if role is Role.APPROVER} == {Press.ALLOW, Press.DENY, Press.OPTION}


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
