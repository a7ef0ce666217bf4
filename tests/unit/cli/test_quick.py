"""The quick way of `standing list` and `say` and the whole command line are one and the same to the one who asks."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import CoreError
from core.base.paths import StatePaths
from core.cli import quick
from core.cli.app import invoke
from core.config.loading import load
from core.delivery.saying import Said
from core.model.message import MessageState
from core.model.session import Definition, SessionRecord
from core.session.system import System
from core.store.records import Records

FIRST, SECOND, BROKEN, ABSENT = "first.yaml", "second.yaml", "broken.yaml", "absent.yaml"
WORDS_FILE = "words.txt"

ANSWERED = [
    ["standing", "list"],
    ["standing", "list", "--json"],
    ["--json", "standing", "list"],
    ["--json", "standing", "list", "--format", "text"],
    ["standing", "list", "--format", "json"],
    ["standing", "list", "--format=json"],
    ["standing", "list", "--format=text", "--json"],
    ["standing", "list", "--json", "--format", "text"],
    ["standing", "list", "--json", "--format", "text", "--json"],
    ["standing", "list", "--format", "json", "--format", "text"],
    ["standing", "list", "--format", "json", "--json", "--format", "text"],
    ["--config", FIRST, "standing", "list"],
    [f"--config={SECOND}", "--json", "standing", "list"],
    ["--config", FIRST, "--config", SECOND, "standing", "list", "--json"],
    ["--as-operator", "standing", "list"],
    ["--json", "--json", "--as-operator", "standing", "list"],
    ["--config", BROKEN, "standing", "list", "--json"],
    ["--config", ABSENT, "standing", "list"],
    ["--config=", "standing", "list"],
    ["--config", "--json", "standing", "list"],
    ["--config", "standing", "standing", "list"],
]
LEFT_TO_CLICK = [
    [],
    ["standing"],
    ["list"],
    ["standing", "--json", "list"],
    ["standing", "list", "extra"],
    ["standing", "list", "--"],
    ["--", "standing", "list"],
    ["standing", "list", "--help"],
    ["-h", "standing", "list"],
    ["--version", "standing", "list"],
    ["standing", "list", "--format"],
    ["standing", "list", "--format", "xml"],
    ["standing", "list", "--format=JSON"],
    ["standing", "list", "--form", "json"],
    ["standing", "list", "--json=yes"],
    ["--json=", "standing", "list"],
    ["--format", "json", "standing", "list"],
    ["standing", "list", "--config", FIRST],
    ["--config"],
    ["--config", "standing", "list"],
    ["--nope", "standing", "list"],
    ["standing", "get", "scribe"],
    ["", "standing", "list"],
    ["status"],
]
SAID = [
    ["standing", "say", "scribe", "--text", "hello"],
    ["standing", "say", "--text=a=b --json", "scribe"],
    ["standing", "say", "scribe", "--text", "-"],
    ["standing", "say", "scribe", "--text", "--raw"],
    ["standing", "say", "scribe", "--text", ""],
    ["standing", "say", "scribe", "--text", "one", "--text", "two"],
    ["standing", "say", "scribe", "--file", WORDS_FILE],
    ["standing", "say", "scribe", f"--file={ABSENT}"],
    ["standing", "say", "scribe"],
    ["standing", "say", "scribe", "word"],
    ["standing", "say", "scribe", "--text", "x", "--file", WORDS_FILE],
    ["standing", "say", "scribe", "--text", "x", "--actor", "ann", "--raw", "--wait", "2.5"],
    ["standing", "say", "scribe", "--text", "x", "--actor", "slack:U1", "--no-wait", "--wait=3"],
    ["standing", "say", "scribe", "--text", "x", "--wait", "nan"],
    ["standing", "say", "scribe", "--text", "x", "--json"],
    ["standing", "say", "scribe", "--text", "x", "--format", "json", "--format=text", "--json"],
    ["--json", "--as-operator", "--config", SECOND, "standing", "say", "scribe", "--text", "x"],
    ["--json", "standing", "say", "scribe", "--text", "x", "--format", "text"],
    ["--config", BROKEN, "standing", "say", "scribe", "--text", "x"],
]
UNSAID = [
    ["standing", "say"],
    ["standing", "say", "--text", "x"],
    ["standing", "say", "", "--text", "x"],
    ["standing", "say", "scribe", "-", "more"],
    ["standing", "say", "scribe", "--text"],
    ["standing", "say", "scribe", "--tex", "x"],
    ["standing", "say", "scribe", "--text", "x", "--wait", "soon"],
    ["standing", "say", "scribe", "--text", "x", "--raw=yes"],
    ["standing", "say", "scribe", "--text", "x", "--format", "xml"],
    ["standing", "say", "scribe", "--help"],
    ["standing", "say", "scribe", "--", "-"],
    ["standing", "say", "scribe", "-x"],
    ["standing", "say", "scribe", "--text", "x", "--config", FIRST],
    ["standing", "say", "scribe", "--text", "x", "--as-operator"],
]
WORDS = sorted({word for line in ANSWERED + LEFT_TO_CLICK for word in line})


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of their own with three configurations, three records, and no tmux server."""
    for name in ("THE_LOOP_CONFIG", "THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    folders = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
    for name, folder in folders.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path(FIRST).write_text("standingSessions: {sessions: [{name: scribe, description: 'writes 日本'}, {name: a}]}\n")
    Path(SECOND).write_text(f"state: {{root: {tmp_path}/other}}\nrouting: {{defaultHarness: bundled}}\n")
    Path(BROKEN).write_text("standingSessions: {sessions: [{name: BAD}]}\nnope: 1\n")
    paths = StatePaths(tmp_path / "state" / "the-loop")
    for name in ("scribe", "builder"):
        Records(paths).write(SessionRecord(name, f"s-{name}", Definition(name), datetime(2026, 11, 29, tzinfo=UTC)))
    (paths.records / "torn.json").write_text("{")


def _seen(ask: Callable[[list[str]], int | None], line: list[str], capsys: pytest.CaptureFixture[str]) -> object:
    """Return all that the one who asks can see: exit code, both outputs, or the error that the entry prints."""
    capsys.readouterr()
    try:
        code: object = ask(line)
    except CoreError as error:
        code = (type(error), str(error), error.remedy)
    return code, capsys.readouterr()


@pytest.mark.parametrize("line", ANSWERED, ids=" ".join)
def test_answer_is_the_one_of_the_whole_command_line(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is answered quickly has the output, the exit code and the error that click's command has."""
    quickly = _seen(quick.answer, line, capsys)
    wholly = _seen(invoke, line, capsys)

    assert quickly == wholly
    assert quickly[0] is not None  # type: ignore[index]


class Saying:
    """Stands for `say`: takes note of what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def __call__(self, system: System, name: str, text: str, *, actor: str, raw: bool, wait: float) -> Said:
        self.asked.append((system.settings.source, name, text, actor, raw, repr(wait)))
        return Said(name, "m-1", MessageState.SUBMITTED, (f"{name}: submitted", "1 control character"))


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> Saying:
    """Nothing is said: what the command line has understood is what is compared."""
    found = Saying()
    monkeypatch.setattr("core.delivery.saying.say", found)
    Path(WORDS_FILE).write_text("from a file\n")
    return found


@pytest.mark.parametrize("line", SAID, ids=" ".join)
def test_what_is_said_is_what_the_whole_command_line_says(
    line: list[str], saying: Saying, capsys: pytest.CaptureFixture[str]
) -> None:
    """To whom, what, by whom and how: both understand the same, print the same, and fail with the same words."""
    quickly = _seen(quick.answer, line, capsys)
    asked, saying.asked = saying.asked, []
    wholly = _seen(invoke, line, capsys)

    assert (quickly, asked) == (wholly, saying.asked)
    assert quickly[0] is not None  # type: ignore[index]


@pytest.mark.parametrize("line", UNSAID, ids=" ".join)
def test_a_line_that_is_not_plainly_right_says_nothing(
    line: list[str], saying: Saying, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left to the whole command line, which knows what to complain of."""
    seen = _seen(quick.answer, line, capsys)

    assert seen == (None, ("", ""))
    assert saying.asked == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(words=st.lists(st.sampled_from(sorted({word for line in SAID + UNSAID for word in line[2:]})), max_size=6))
def test_nothing_is_said_that_the_whole_command_line_would_say_otherwise(
    words: list[str], saying: Saying, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever stands behind `say`: either it is left alone, or both understand the same."""
    line, saying.asked = ["standing", "say", *words], []

    quickly = _seen(quick.answer, line, capsys)
    asked, saying.asked = saying.asked, []

    assert quickly == (None, ("", "")) or (quickly, asked) == (_seen(invoke, line, capsys), saying.asked)


@pytest.mark.parametrize("line", LEFT_TO_CLICK, ids=" ".join)
def test_other_lines_are_left_to_the_whole_command_line(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong line, a request for help and every other command get no answer here, and nothing is printed."""
    seen = _seen(quick.answer, line, capsys)

    assert seen == (None, ("", ""))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(line=st.lists(st.sampled_from(WORDS), max_size=4).map(lambda words: [*words, "standing", "list"]))
def test_nothing_is_answered_that_click_would_answer_otherwise(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever stands before the command: either it is left alone, or the answers are the same."""
    quickly = _seen(quick.answer, line, capsys)

    assert quickly == (None, ("", "")) or quickly == _seen(invoke, line, capsys)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(words=st.lists(st.sampled_from(WORDS), max_size=4))
def test_nothing_after_the_command_is_answered_otherwise(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever stands behind the command: either it is left alone, or the answers are the same."""
    line = ["standing", "list", *words]

    quickly = _seen(quick.answer, line, capsys)

    assert quickly == (None, ("", "")) or quickly == _seen(invoke, line, capsys)


@pytest.mark.parametrize("name", ["THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE"])
def test_agents_and_completion_are_left_to_the_whole_command_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process inside a pane may do is decided in one place, and so is what a shell is told."""
    monkeypatch.setenv(name, "i-abc")

    assert quick.answer(["standing", "list"]) is None


def test_empty_instance_is_no_agent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty variable means a person, here as in the whole command line."""
    monkeypatch.setenv("THE_LOOP_INSTANCE", "")

    assert _seen(quick.answer, ["standing", "list"], capsys) == _seen(invoke, ["standing", "list"], capsys)


def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    """A list on a machine that never had a session makes neither state nor database."""
    quick.answer(["--config", SECOND, "standing", "list"])

    assert load(Path(SECOND)).state_root == tmp_path / "other"
    assert not (tmp_path / "other").exists()
