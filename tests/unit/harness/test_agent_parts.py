"""The parts of the bundled agent that touch nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.agent.answers import HELP, Now, Pause, Permission, Question, StartTask, UseTool, answer, notification
from embedded.agent.conversation import BadOption, Conversation, parse
from embedded.agent.session import Composer, Dialog, Key, Keyboard, Press

ID = "2f075eca-23b3-4176-82be-b460f447f46a"


def run(prompt: str, *results: Any, earlier: tuple[str, ...] = ()) -> tuple[list[Any], str]:
    """Run a turn to its end, giving these results to its steps; return the steps and the answer."""
    turn = answer([prompt], earlier)
    steps: list[Any] = []
    given_results = iter(results)
    result = None
    while True:
        try:
            steps.append(turn.send(result))
        except StopIteration as end:
            return steps, str(end.value)
        result = next(given_results, None)


@pytest.mark.parametrize(
    ("prompt", "results", "steps", "end"),
    [
        ("help", (), [], HELP),
        ("[ann via slack #k3f9x2] HELP ", (), [], HELP),
        ("time", ("noon",), [Now()], "It is noon."),
        ("sleep 2", (), [UseTool("sleep 2", 2.0)], "I have slept for 2 s."),
        ("long 2", (), [Pause(0.02)] * 2, "line 1 of 2\nline 2 of 2"),
        (
            "background 3",
            ("b1",),
            [StartTask(3.0)],
            "The background task b1 runs for 3 s; I will tell when it is over.",
        ),
        ("ask permission", ((True, "today"),), [Permission("date")], "I was allowed to: today"),
        ("ask permission", ((False, ""),), [Permission("date")], "I was not allowed to, so I did nothing."),
        ("ask question Which? | a | b", ("b",), [Question("Which?", ("a", "b"))], "Your answer is: b"),
        ("ask question", ("yes",), [Question("Which one?", ("yes", "no"))], "Your answer is: yes"),
        ("[ann #k3] hello  there", (), [], "You said (2 words): “hello there”"),
        (notification("b1", "sleep 2", "completed"), (), [], "The background task b1 is over: completed."),
    ],
)
def test_agent_answers(prompt: str, results: tuple[Any, ...], steps: list[Any], end: str) -> None:
    """The same prompt, framed or not, always leads to the same steps and the same answer."""
    assert run(prompt, *results) == (steps, end)


def test_arguments_that_no_tool_takes_are_told() -> None:
    """Half an object, and one that is deeper than anybody reads."""
    for arguments in ('{"a": }', '{"a": ' + "[" * 100_000 + "}"):
        steps, end = run(f"call say {arguments}")

        assert steps == []
        assert end.startswith("The arguments are no JSON: ")


def test_history_tells_what_was_said() -> None:
    """The conversation's earlier messages are remembered."""
    _, told = run("history", earlier=("one", "two"))

    assert told == "This conversation: 2 messages so far, the last: “two”\n1. “one”\n2. “two”"


def test_long_text_is_not_echoed_whole() -> None:
    """An answer stays readable whatever was sent."""
    _, told = run("x" * 100_000)

    assert len(told) < 300
    assert "(100000 characters)" in told


def test_boot_prompt_is_acknowledged() -> None:
    """A brief is not echoed."""
    turn = answer(["Your name is scribe."], (), boot=True)

    with pytest.raises(StopIteration) as end:
        next(turn)
    assert str(end.value.value).startswith("Ready. I have read my brief (4 words).")


@pytest.mark.parametrize(
    ("data", "presses"),
    [
        (b"hi\r", [Press(Key.TEXT, "hi"), Press(Key.ENTER)]),
        ("日本".encode(), [Press(Key.TEXT, "日本")]),
        (b"\x1b[200~a\nb\x03\x1b[201~\r", [Press(Key.PASTE, "a\nb\x03"), Press(Key.ENTER)]),
        (
            b"a\x7f\x15\x13\x03\n",
            [Press(Key.TEXT, "a")]
            + [Press(key) for key in (Key.BACKSPACE, Key.KILL_LINE, Key.STASH, Key.INTERRUPT, Key.NEWLINE)],
        ),
        (b"\x1b[A\x1bOA\x1bOP\x1b[1;5C\x1b[Bx", [Press(Key.UP), Press(Key.UP), Press(Key.DOWN), Press(Key.TEXT, "x")]),
        (b"\x01\x04x", [Press(Key.TEXT, "x")]),
        (b"\x1b[200~a\x1b[201~x\x1b[201~", [Press(Key.PASTE, "a"), Press(Key.TEXT, "x")]),
    ],
)
def test_bytes_become_keys_however_they_are_cut(data: bytes, presses: list[Press]) -> None:
    """One read or one byte at a time: the same keys."""
    whole = Keyboard().feed(data)
    keyboard = Keyboard()
    single = [press for index in range(len(data)) for press in keyboard.feed(data[index : index + 1])]

    assert whole == presses
    assert _joined(single) == _joined(presses)
    assert not keyboard.undecided


def _joined(presses: list[Press]) -> list[Press]:
    """Join runs of text, which a cut may part."""
    joined: list[Press] = []
    for press in presses:
        if joined and joined[-1].key is press.key is Key.TEXT:
            joined[-1] = Press(Key.TEXT, joined[-1].text + press.text)
        else:
            joined.append(press)
    return joined


def test_lone_escape_is_decided_by_time() -> None:
    """ESC may begin something longer; when nothing follows it is the key."""
    keyboard = Keyboard()
    assert keyboard.feed(b"\x1b") == []
    assert keyboard.undecided

    assert keyboard.settle() == [Press(Key.ESCAPE)]
    assert not keyboard.undecided


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_break_the_keyboard(chunks: list[bytes]) -> None:
    """Whatever the terminal sends, keys come out."""
    keyboard = Keyboard()
    for chunk in chunks:
        keyboard.feed(chunk)
    keyboard.settle()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x1b\r")))
def test_pasted_text_arrives_exactly(text: str) -> None:
    """Text between the brackets is taken as it is, all the way to the message."""
    (press,) = Keyboard().feed(b"\x1b[200~" + text.encode() + b"\x1b[201~")
    composer = Composer()

    composer.add(press.text)

    assert composer.take() == text


def test_composer_clears_and_stashes() -> None:
    """C-u clears a line, then the break before it; C-s puts text aside until the next message is sent."""
    composer = Composer()
    composer.add("one\r\ntwo\rthree")
    assert composer.text == "one\ntwo\nthree"
    for _ in range(5):
        composer.kill_line()
    assert composer.text == ""
    composer.kill_line()
    composer.add("half")
    composer.stash()
    composer.add("message")

    assert composer.take() == "message"
    assert composer.take() == "half"
    composer.stash()
    assert composer.text == ""


@given(st.text(), st.integers(0, 200))
def test_composer_shows_one_row(text: str, width: int) -> None:
    """What is shown fits its row."""
    composer = Composer()
    composer.add(text)

    assert "\n" not in composer.shown(width)
    assert len(composer.shown(width)) <= max(width, len(text))


def test_dialog_takes_keys_and_no_paste() -> None:
    """Enter picks the first option, a digit its own; pasted text picks nothing."""
    dialog = Dialog("Which?", ["red", "blue"])

    picked = [dialog.picked(press) for press in (Press(Key.ENTER), Press(Key.TEXT, "2"), Press(Key.PASTE, "2"))]

    assert picked == ["red", "blue", None]
    assert [dialog.picked(Press(Key.TEXT, text)) for text in ("0", "3", "x", "²", "")] == [None] * 5


def test_conversation_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages and tasks that nobody was told of survive the process; a torn line is passed over."""
    monkeypatch.chdir(tmp_path)
    first = Conversation(tmp_path, ID)
    first.user("hello", "human", "t-1")
    first.task("b1", "sleep 9", "running")
    first.task("b2", "sleep 9", "running")
    first.task("b2", "sleep 9", "reported")
    with first.path.open("a") as stream:
        stream.write('{"type": "us')

    second = Conversation(tmp_path, ID)
    second.load()

    assert second.prompts == ["hello"]
    assert second.open_tasks == {"b1": "sleep 9"}
    assert first.path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_nobody_can_read_spoils_no_conversation(tmp_path: Path) -> None:
    """What is half written, or deeper than anybody reads, is passed over."""
    conversation = Conversation(tmp_path, ID)
    conversation.user("hello", "human", "t-1")
    with conversation.path.open("a") as file:
        file.write("[" * 100_000 + '\n{"type": "us\n')
    again = Conversation(tmp_path, ID)

    again.load()

    assert again.prompts == ["hello"]


def test_command_line_is_read(tmp_path: Path) -> None:
    """The options are those that the adapter gives."""
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"Stop": []}}))

    options = parse(["--state", "/s", "--settings", str(settings), "--session-id", ID, "--", "--a prompt"])

    assert (options.state, options.session_id, options.resume) == (Path("/s"), ID, False)
    assert (options.hooks, options.prompt) == ({"Stop": []}, "--a prompt")
    assert parse(["--state", "/s", "--resume", ID]).resume


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--what"],
        ["--state", "/s", "--session-id", "no uuid"],
        ["--state", "/s", "--settings", f"/nowhere-{os.getpid()}"],
        ["--state", "/s", "a prompt"],
    ],
)
def test_command_line_that_cannot_be_obeyed_is_refused(argv: list[str]) -> None:
    """What it does not know it says."""
    with pytest.raises(BadOption):
        parse(argv)
