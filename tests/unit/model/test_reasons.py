"""Codes and their texts: each has one, and what another release wrote is shown, not lost."""

import pytest

from core.model.reasons import Because, Reason, Remedy, because, said, shown, stored, text_of
from core.model.texts import REASONS, REMEDIES, Misfit, arguments, text

CODES = [*Reason, *Remedy]


@pytest.mark.parametrize(("codes", "table"), [(Reason, REASONS), (Remedy, REMEDIES)])
def test_every_code_has_one_text_and_every_text_a_code(
    codes: type[Reason] | type[Remedy], table: dict[Reason | Remedy, object]
) -> None:
    """A code without a text could not be told, and a text without a code is told by nobody."""
    assert set(table) == set(codes)


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{type(code).__name__}-{code.value}")
def test_every_text_is_made_of_its_own_arguments(code: Reason | Remedy) -> None:
    """With exactly its arguments it is a sentence, in which no brace is left."""
    made = text(code, **dict.fromkeys(arguments(code), "xyz"))

    assert made
    assert not {"{", "}"} & set(made)


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{type(code).__name__}-{code.value}")
def test_an_argument_too_many_is_an_error(code: Reason | Remedy) -> None:
    """Whoever gives what no text tells has mistaken the code."""
    with pytest.raises(Misfit, match="nobody"):
        text(code, **dict.fromkeys([*arguments(code), "nobody"], "xyz"))


@pytest.mark.parametrize("code", [code for code in CODES if arguments(code)], ids=lambda code: code.value)
def test_a_missing_argument_is_an_error(code: Reason | Remedy) -> None:
    """No sentence goes out with a hole in it."""
    with pytest.raises(Misfit, match=sorted(arguments(code))[0]):
        text(code)


def test_a_reason_is_made_with_its_own_arguments_alone() -> None:
    """The mistake is found where the reason is made, not where it is told."""
    with pytest.raises(Misfit, match="mode"):
        because(Reason.IN_MODE)
    with pytest.raises(Misfit, match="mode"):
        because(Reason.BUSY, mode="vim")

    assert because(Reason.IN_MODE, mode="vim").text == "the input line is in vim"


def test_an_argument_that_tells_nothing_is_left_out_of_the_sentence() -> None:
    """Nobody ahead is not told."""
    assert because(Reason.PAUSED, ahead=0).text == "the session is paused"
    assert because(Reason.PAUSED, ahead=3).text == "the session is paused; 3 messages are ahead"


@pytest.mark.parametrize(
    "why",
    [
        Because(Reason.BUSY),
        because(Reason.IN_MODE, mode='vim "normal" \u2026 {x}'),
        because(Reason.PAUSED, ahead=3),
        because(Reason.WAITED_TOO_LONG, why=Because(Reason.SILENT)),
        because(Reason.NOT_SHOWN, why=because(Reason.NO_ENTER, why=because(Reason.PAUSED, ahead=1))),
        said("no such file: {name}"),
    ],
    ids=lambda why: str(why.reason),
)
def test_a_reason_is_the_same_after_it_was_stored(why: Because) -> None:
    """Code and arguments go into two columns and come back, a reason within a reason among them."""
    again = stored(why.code, why.given)

    assert again == why
    assert text_of(again) == why.text


def test_a_reason_within_a_reason_is_told_by_its_own_text() -> None:
    """What kept it waiting is the end of the sentence."""
    why = because(Reason.WAITED_TOO_LONG, why=Because(Reason.SILENT))

    assert why.text == "it waited too long: tmux does not answer"


def test_no_code_is_no_reason() -> None:
    """What has no reason has an empty code, and nothing is told of it."""
    assert stored("", "{}") is None
    assert text_of(None) == ""


@pytest.mark.parametrize(("given", "told"), [('{"by": "cli:ann"}', 'frozen {"by": "cli:ann"}'), ("{}", "frozen")])
def test_a_newer_releases_code_is_shown_and_kept(given: str, told: str) -> None:
    """After a downgrade a code that nobody knows is told as it is, and stored again unchanged."""
    why = stored("frozen", given)

    assert why is not None
    assert why.text == told
    assert (why.code, why.given) == ("frozen", given)


def test_a_newer_releases_code_within_a_reason_is_shown_and_kept() -> None:
    """It is told in its place of the sentence."""
    given = '{"why": {"args": {"by": "cli:ann"}, "reason": "frozen"}}'

    why = stored("waited-too-long", given)

    assert why is not None
    assert why.text == 'it waited too long: frozen {"by": "cli:ann"}'
    assert stored(why.code, why.given) == why


@pytest.mark.parametrize("given", ["{}", '{"late": "sent 3 h ago", "by": "cli:ann"}', '{"late": null, "more": [1]}'])
def test_a_newer_releases_arguments_are_shown_and_the_code_still_counts(given: str) -> None:
    """What waits for a person's word waits for it, whatever another release tells with it."""
    why = stored("confirm", given)

    assert why is not None
    assert why.reason is Reason.CONFIRM
    assert why.text.startswith("confirm")


@pytest.mark.parametrize("given", ["", "[]", "{", '"x"'])
def test_arguments_that_are_no_object_are_refused(given: str) -> None:
    """A damaged row is named by the store, not guessed at."""
    with pytest.raises(ValueError):  # noqa: PT011 - of JSON's own, or ours
        stored("busy", given)


def test_what_has_no_text_is_shown_as_code_and_arguments() -> None:
    """Both are there for whoever asks somebody."""
    assert shown("frozen", "{}") == "frozen"
    assert shown("frozen", '{"a": 1}') == 'frozen {"a": 1}'
