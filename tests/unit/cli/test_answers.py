"""What commands print and how they exit: JSON alone on standard output, and errors of one shape."""

import json
import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from core.cli.main import run
from core.cli.printing import print_harnesses, print_logs, print_row, print_rows, print_window
from core.config.loading import load
from core.harness import programs
from core.harness.claude.adapter import TRIED
from core.model.harness import Usage, Working
from core.model.pane import Window
from core.model.restarting import explained
from core.model.session import Definition, SessionRecord
from core.service.wiring import build_system
from core.session.system import System
from tests.unit.cli.conftest import Terminal

ROW_KEYS = {
    *("name", "uid", "declared", "description", "autoStart", "harness", "cwd", "tmuxTarget", "attach", "ref"),
    *(
        "status",
        "running",
        "live",
        "phase",
        "hold",
        "activity",
        "hooks",
        "permissionMode",
        "harnessVersion",
        "capabilities",
        "pendingTasks",
        "working",
        "queued",
        "loops",
    ),
    *(
        "harnessSessionId",
        "chat",
        "slackChannel",
        "slackThread",
        "startedAt",
        "lastMessageAt",
        "drift",
        "outcome",
        "detail",
    ),
}
POSITIONS: tuple[Callable[[list[str]], list[str]], ...] = (
    lambda verb: ["--json", *verb],
    lambda verb: ["--format", "json", *verb],
    lambda verb: ["--format=json", *verb],
    lambda verb: [*verb, "--json"],
    lambda verb: [*verb, "--format", "json"],
    lambda verb: [*verb, "--format=json"],
    lambda verb: [verb[0], "--json", *verb[1:]],
)
VERBS = (
    ("standing", "list"),
    ("standing", "get", "scribe"),
    ("standing", "stop"),
    ("standing", "stop", "scribe"),
    ("standing", "say", "scribe", "--text", "hello"),
    ("standing", "restart", "scribe"),
    ("standing", "attach", "scribe"),
    ("standing", "screen", "scribe"),
    ("standing", "delete", "scribe"),
    ("standing", "pause", "scribe"),
    ("standing", "pause", "scribe", "--hard"),
    ("standing", "resume", "scribe"),
    ("standing", "interrupt", "scribe"),
    ("standing", "queue", "scribe"),
    ("standing", "cancel", "m-1"),
    ("standing", "confirm", "m-1"),
    ("standing", "logs", "scribe"),
    ("standing", "create", "extra", "--no-start"),
    ("standing", "start", "unknown"),
    ("status",),
    ("stop",),
    ("events", "--last", "1"),
    ("config", "check"),
    ("config", "show"),
    ("config", "schema"),
    ("config", "init"),
    ("config", "path"),
    ("slack", "manifest"),
    ("slack", "check"),
)


@pytest.mark.parametrize("position", range(len(POSITIONS)))
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_answers_in_json_alone(terminal: Terminal, verb: tuple[str, ...], position: int) -> None:
    """With --json or --format json, before or behind the verb, standard output is JSON and nothing else."""
    code = terminal.run(*POSITIONS[position](list(verb)))

    lines = terminal.out.splitlines() if verb[0] == "events" else [terminal.out]
    assert code in (0, 1)
    assert "internal_error" not in terminal.out
    assert all(json.loads(line) is not None for line in lines)


def test_a_row_has_the_keys_that_people_script_against(terminal: Terminal) -> None:
    """No key more and no key less, in list, get, status and the answers of verbs."""
    terminal.run("standing", "list", "--json")
    [listed] = terminal.json
    terminal.run("standing", "get", "scribe", "--json")
    got = terminal.json
    terminal.run("status", "--json")
    [told] = terminal.json["standingSessions"]
    terminal.run("standing", "stop", "scribe", "--json")
    [stopped] = terminal.json["sessions"]

    for row in (listed, got, told, stopped):
        assert set(row) == ROW_KEYS


def test_the_lifecycle_has_its_keys(terminal: Terminal) -> None:
    """services, harnesses, standingSessions and ok; a service row is name, running, pid, detail and its code."""
    terminal.run("status", "--json")

    assert sorted(terminal.json) == ["harnesses", "ok", "services", "standingSessions"]
    assert {tuple(sorted(row)) for row in terminal.json["services"]} == {("detail", "name", "pid", "reason", "running")}


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("standing", "get", "nobody"), "unknown_session", 1),
        (("standing", "say", "nobody", "--text", "x"), "unknown_session", 1),
        (("standing", "say", "scribe", "--text", "x"), "not_running", 1),
        (("standing", "get", "Not A Name"), "invalid_value", 2),
        (("standing", "say", "scribe", "--text", " \n"), "invalid_value", 2),
        (("standing", "say", "scribe"), "invalid_value", 2),
        (("standing", "say", "scribe", "--text", "a", "--file", "b"), "invalid_value", 2),
        (("standing", "say", "scribe", "--file", "/no/such/file"), "invalid_value", 2),
        (("standing", "create", "scribe"), "name_taken", 1),
        (("standing", "pause", "scribe"), "not_running", 1),
        (("standing", "resume", "nobody"), "unknown_session", 1),
        (("standing", "interrupt", "scribe"), "not_running", 1),
        (("standing", "queue", "nobody"), "unknown_session", 1),
        (("standing", "cancel", "m-1"), "unknown_message", 1),
        (("standing", "confirm", "m-1"), "unknown_message", 1),
        (("standing", "logs", "scribe"), "not_running", 1),
        (("standing", "logs", "scribe", "--lines", "0"), "usage", 2),
        (("standing", "delete", "scribe"), "declared_session", 1),
        (("standing", "list", "--no-such-option"), "usage", 2),
        (("standing", "nonsense"), "usage", 2),
        (("nonsense",), "usage", 2),
        (("standing", "get"), "usage", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_error_has_code_message_and_remedy(
    terminal: Terminal, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    """The body is the same for every error, and the exit code says whose fault it is."""
    ended = terminal.run("--json", *words)

    assert ended == exit_code
    assert sorted(terminal.json["error"]) == ["code", "message", "remedy"]
    assert terminal.json["error"]["code"] == code
    assert terminal.json["error"]["message"]
    assert terminal.json["error"]["remedy"]
    assert terminal.err != ""


def test_without_json_an_error_leaves_standard_output_empty(terminal: Terminal) -> None:
    """A word `json` in a text or a name does not make the answer JSON."""
    code = terminal.run("standing", "say", "nobody", "--text", "json")

    assert (code, terminal.out) == (1, "")
    assert "nobody" in terminal.err


def test_a_malformed_configuration_is_an_error_with_every_key(terminal: Terminal) -> None:
    """A verb exits with 2 and one JSON error that names each key and line."""
    terminal.config.write_text("routing: {defaultHarnes: x}\nlimits: {queuedPerSession: many}\n")

    code = terminal.run("standing", "list", "--json")

    message = terminal.json["error"]["message"]
    assert code == 2
    assert "routing.defaultHarnes" in message
    assert "limits.queuedPerSession" in message
    assert f"{terminal.config}:2" in message


@pytest.mark.parametrize("verb", ["start", "status", "restart"])
def test_the_lifecycle_answers_a_malformed_configuration_with_one_row(terminal: Terminal, verb: str) -> None:
    """The row is `misconfigured`, has the keys of every row, and the exit code is 1."""
    terminal.config.write_text("routing: {defaultHarnes: x}\n")

    code = terminal.run(verb, "--json")

    [row] = terminal.json["standingSessions"]
    assert code == 1
    assert terminal.json["ok"] is False
    assert (row["outcome"], set(row)) == ("misconfigured", ROW_KEYS)
    assert "defaultHarnes" in row["detail"]


def test_people_get_a_table(terminal: Terminal) -> None:
    """Without --json a listing is a table with a head line."""
    code = terminal.run("standing", "list")

    head, row = terminal.out.splitlines()
    assert code == 0
    assert head.split()[0] == "NAME"
    assert row.split()[0] == "scribe"


def test_status_says_no_where_nothing_runs(terminal: Terminal) -> None:
    """A declared session that should run and does not makes the answer 1."""
    code = terminal.run("status")

    assert code == 1
    assert "service: not running" in terminal.out


def test_an_empty_queue_is_told_in_both_forms(terminal: Terminal) -> None:
    """People get a sentence, programs the fixed keys."""
    terminal.run("standing", "queue", "scribe")
    told = terminal.out
    terminal.run("standing", "queue", "scribe", "--json")

    assert told == "nothing waits for scribe\n"
    assert terminal.json == {"name": "scribe", "limit": 100, "messages": []}


def test_printed_remedy_works_as_printed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that knows neither the program nor the configuration takes the command that an error names."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    terminal.run("standing", "say", "scribe", "--text", "hello", "--json")
    remedy = terminal.json["error"]["remedy"]
    command = remedy.partition("`")[2].partition("`")[0]

    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} --json"],
        cwd="/",
        env={name: os.environ[name] for name in ("PATH", "HOME", "TMUX_TMPDIR")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert f"--config {terminal.config}" in command
    assert [(row["name"], row["outcome"]) for row in json.loads(done.stdout)["sessions"]] == [("scribe", "failed")]


def test_every_form_of_an_error_names_the_whole_command(terminal: Terminal) -> None:
    """Standard error, a table without rows, and a file that is not there."""
    terminal.run("standing", "get", "nobody")
    unknown = terminal.err
    terminal.config.write_text(f"state: {{root: {terminal.paths.root}}}\n")
    terminal.run("standing", "list")
    empty = terminal.out
    terminal.config.unlink()
    terminal.run("standing", "list")
    missing = terminal.err

    for text in (unknown, empty, missing):
        assert f"--config {terminal.config} " in text
        assert "`the-loop standing" not in text.replace("`the-loop --config", "")


@pytest.mark.parametrize("words", [(), ("standing",), ("config",)], ids=str)
def test_a_command_without_words_is_helped(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Nothing was asked: the help, as it is, and exit code 2."""
    terminal.capture()
    code = run(list(words))
    out, err = terminal.capture()

    assert (code, out) == (2, "")
    assert err.startswith("Usage: the-loop")
    assert "--help` tells" not in err


def test_get_answers_people_in_words(terminal: Terminal) -> None:
    """Yes and no, lists, and a mark with who set it, since when and why; nothing of Python."""
    terminal.run("standing", "stop", "scribe", "--reason", "lunch")
    terminal.run("standing", "get", "scribe")
    shown = dict(line.partition(" ")[::2] for line in terminal.out.splitlines())

    assert shown["declared"].strip() == "yes"
    assert shown["running"].strip() == "no"
    assert re.fullmatch(r"stopped by cli:\w+, since [\dT:.-]+Z: lunch", shown["hold"].strip())
    assert not re.search(r"True|False|None|[{}\[\]]", terminal.out)


def test_list_shows_why_a_session_is_held(terminal: Terminal) -> None:
    """The mark and its reason stand beside the status, cut where they would break the table."""
    terminal.run("standing", "stop", "scribe", "--reason", f"lunch\n{'x' * 100}")
    terminal.run("standing", "list")

    assert "stopped (held: lunch xxx" in terminal.out
    assert "x…)" in terminal.out


def test_status_without_a_service_says_how_to_start_it(terminal: Terminal) -> None:
    """The command stands in the service's row."""
    terminal.run("status")

    assert f"service: not running: start it: `the-loop --config {terminal.config} start`" in terminal.out


def test_what_a_check_finds_names_the_whole_command(terminal: Terminal) -> None:
    """A file that is named and not there: its remedy makes that one, not the default."""
    terminal.config.unlink()
    terminal.run("config", "check")
    shown = terminal.out
    terminal.run("config", "check", "--json")

    whole = f"`the-loop --config {terminal.config} config init`"
    assert whole in shown
    assert whole in terminal.json["problems"][0]["remedy"]


def test_a_check_without_any_file_says_that_it_read_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default file need not be there: no finding, and no word that a file was found good."""
    monkeypatch.delenv("THE_LOOP_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.folder / "nowhere"))
    monkeypatch.setenv("XDG_STATE_HOME", str(terminal.folder / "state-of-no-file"))
    terminal.capture()
    code = run(["config", "check"])
    shown, _ = terminal.capture()
    as_json = run(["config", "check", "--json"])
    answer = json.loads(terminal.capture()[0])

    path = str(terminal.folder / "nowhere" / "the-loop" / "cli-config.yaml")
    assert (code, as_json) == (0, 0)
    assert shown.startswith(f"{path}: there is no such file, so every key has its default")
    assert "config init`" in shown
    assert "nothing is wrong" not in shown
    assert answer == {"problems": [], "warnings": [], "ok": True, "path": path, "exists": False}


def test_a_dialog_that_a_start_would_stand_at_is_told_before(terminal: Terminal) -> None:
    """A project's own MCP servers: by `config check` and in the session's row of `status`, as a warning."""
    work = terminal.folder / "work"
    work.mkdir()
    (work / ".mcp.json").write_text('{"mcpServers": {"mine": {"command": "/bin/false"}}}')
    text = terminal.config.read_text()
    terminal.config.write_text(text.replace("{name: scribe}", f"{{name: scribe, harness: claude, cwd: {work}}}"))

    checked = terminal.run("config", "check")
    shown = terminal.err
    terminal.run("config", "check", "--json")
    answer = terminal.json
    terminal.run("status", "--json")
    [row] = terminal.json["standingSessions"]

    told = f"the MCP servers mine of {work / '.mcp.json'}"
    assert (checked, answer["ok"]) == (0, True)
    assert f"the-loop: scribe: Claude Code asks at its start about {told}" in shown
    assert [told in warning for warning in answer["warnings"]] == [True]
    assert told in row["detail"]


def test_what_a_terminal_acts_on_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A row may hold what an agent wrote: its keys and colours, and text that turns round, stay in the data."""
    row = {"name": "scribe", "detail": "asks\x1b]0;owned\x07 \x9b31m\u202eand\udcff\tgoes on"}

    print_rows([row], str)
    print_row(row)

    printed = capsys.readouterr().out
    assert printed.count("asks]0;owned 31mand\tgoes on") == 2


@pytest.mark.parametrize(
    ("live", "shown"),
    [("live", "running"), ("unknown", "running"), ("dead", "should run"), ("absent", "should run")],
)
def test_a_table_tells_what_should_run_from_what_does(
    capsys: pytest.CaptureFixture[str], live: str, shown: str
) -> None:
    """The status is what people want; beside a pane that is not there it does not read as if it were."""
    print_rows([{"name": "scribe", "status": "running", "live": live}], str)

    assert capsys.readouterr().out.splitlines()[1].split("  ")[1] == shown


def test_a_program_of_which_no_version_was_tried_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_harnesses([{"name": "gemini", "version": "0.61.0", "tried": [], "detail": "nobody tried it"}])

    assert capsys.readouterr().out == "gemini: 0.61.0 (tried: none): nobody tried it\n"


def claude_says(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let the declared session run a Claude Code that answers like this."""
    program = terminal.folder / "claude"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{terminal.folder}{os.pathsep}{os.environ['PATH']}")
    terminal.config.write_text(terminal.config.read_text().replace("defaultHarness: absent", "defaultHarness: claude"))


def test_status_tells_that_a_version_was_tried(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the range of those that were; nothing else is said of it."""
    claude_says(terminal, monkeypatch, f"echo '{TRIED[0]} (Claude Code)'")

    terminal.run("status")
    told = terminal.out.splitlines()
    terminal.run("status", "--json")

    assert f"claude: {TRIED[0]} (tried: {TRIED[0]} to {TRIED[-1]})" in told
    assert terminal.json["harnesses"] == [
        {"name": "claude", "version": TRIED[0], "tried": list(TRIED), "detail": ""},
    ]


@pytest.mark.parametrize(
    ("script", "version", "said"),
    [
        ("echo '99.0.0 (Claude Code)'", "99.0.0", "newer than any that was tried"),
        ("echo '2.1.9 (Claude Code)'", "2.1.9", "older than any that was tried"),
        ("echo '2.1.281 (Claude Code)'", "2.1.281", "never tried"),
        ("echo broken >&2; exit 3", None, "ended with 3 and said: broken"),
        ("exec sleep 100", None, "timed out"),
    ],
)
def test_status_tells_that_a_version_was_never_tried(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, script: str, version: str | None, said: str
) -> None:
    """In the line and in the JSON; one that cannot be asked for is told as that, and the rest of the answer stands."""
    monkeypatch.setattr(programs, "SECONDS", 1.0)
    claude_says(terminal, monkeypatch, script)

    terminal.run("status")
    [told] = [line for line in terminal.out.splitlines() if line.startswith("claude: ")]
    terminal.run("status", "--json")
    [row] = terminal.json["harnesses"]

    assert said in told
    assert (row["version"], said in row["detail"]) == (version, True)
    assert terminal.json["standingSessions"][0]["harness"] == "claude"


def test_status_names_the_program_that_runs_and_the_one_that_is_next(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that was started with Claude Code has its line, whatever the default is by now."""
    claude_says(terminal, monkeypatch, f"echo '{TRIED[0]} (Claude Code)'")
    system = build_system(load(terminal.config, dict(os.environ)), dict(os.environ))
    system.records.write(
        SessionRecord("scribe", "u-1", Definition("scribe"), system.clock.now(), declared=True, harness_in_use="claude")
    )
    terminal.config.write_text(terminal.config.read_text().replace("defaultHarness: claude", "defaultHarness: absent"))

    terminal.run("status", "--json")

    assert [row["name"] for row in terminal.json["harnesses"]] == ["claude"]


def test_status_tells_of_a_claude_code_that_is_not_there(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version is unknown, and why."""
    claude_says(terminal, monkeypatch, "")
    (terminal.folder / "claude").unlink()
    monkeypatch.setenv("PATH", "/nowhere")

    terminal.run("status", "--json")

    [row] = terminal.json["harnesses"]
    assert (row["version"], "is not on PATH" in row["detail"]) == (None, True)


def test_what_a_terminal_showed_stands_apart_from_what_we_say_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line of theirs has a mark before it, so that none can be taken for a heading of ours."""
    ended = {"at": None, "exit": {"status": 1, "signal": None}, "output": "one\n--- now\r\n\ntwo"}

    print_logs({"name": "scribe", "live": "live", "screen": "--- ended today (status 0)", "ended": ended})

    assert capsys.readouterr().out.splitlines() == [
        "--- ended not long ago (status 1: the program ended with an error; its last output may say which)",
        "| one",
        "| --- now",
        "|",
        "| two",
        "--- now",
        "| --- ended today (status 0)",
    ]


@pytest.mark.parametrize(
    ("status", "number", "said"),
    [
        (0, None, "status 0: it ended by itself, without an error"),
        (127, None, "status 127: the program, or one that it needs, was not found"),
        (137, None, "status 137: it was ended by SIGKILL (such as when memory runs out)"),
        (None, 15, "signal 15: it was ended by SIGTERM (a request to end)"),
        (77, None, "status 77"),
        (None, None, "it is not known how"),
    ],
)
def test_logs_explain_how_a_program_ended(status: int | None, number: int | None, said: str) -> None:
    """A status that programs share has its meaning beside it; any other stands alone."""
    assert explained(status, number) == said


def test_a_row_has_no_line_for_what_is_empty_and_a_table_a_cost_where_one_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`no` and `0` are something; null, "" and an empty list are nothing."""
    spent = Working(session=Usage(1, 2, 3, cost=1.239)).to_json()

    print_row({"name": "scribe", "description": "", "declared": False, "queued": 0, "drift": [], "hold": None})
    print_rows([{"name": "scribe", "working": spent}, {"name": "other", "working": None}], str)

    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["name", "scribe"], ["declared", "no"], ["queued", "0"],
        ["NAME", "COST"], ["scribe", "$1.24"], ["other"],
    ]  # fmt: skip


def test_what_tmux_tells_of_a_window_stands_before_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Options and the screen have a mark before each line: anybody may have set or written them."""
    options = {"remain-on-exit": True, "window-size": "manual", "@note": "one\n--- now"}
    window = Window("@1", 200, 50, history=72, limit=10_000, alternate=True, options=options)

    print_window(window.to_json(), "--- window @2: none\ntwo")

    assert capsys.readouterr().out.splitlines() == [
        "--- window @1: 200 columns, 50 rows, 72 rows of history (at most 10000); "
        "its program draws on the alternate screen",
        "| remain-on-exit: on",
        "| window-size: manual",
        "| @note: one",
        "| --- now",
        "--- now",
        "| --- window @2: none",
        "| two",
    ]


@pytest.mark.parametrize("told", ["first\nscribe  running", "first\u2028scribe  running", "first\x85scribe  running"])
def test_no_text_of_a_row_makes_a_row_of_its_own(capsys: pytest.CaptureFixture[str], told: str) -> None:
    """Whoever wrote the description or the reason of a mark writes no line of the table."""
    print_rows([{"name": "scribe", "status": "running", "detail": told}], str)
    print_row({"name": "scribe", "description": told})

    shown = capsys.readouterr().out.splitlines()

    assert [line.split()[0] for line in shown] == ["NAME", "scribe", "name", "description"]
    assert all("first scribe  running" in line for line in (shown[1], shown[3]))


def recorded(terminal: Terminal) -> System:
    """Return the terminal's ports, with a session that has run, and a database."""
    system = build_system(load(terminal.config, dict(os.environ)), dict(os.environ))
    system.database.open()
    system.records.write(SessionRecord("scribe", "u-1", Definition("scribe"), system.clock.now(), instance_id="i-1"))
    system.close()
    return system


def no_database(system: System) -> None:
    """Remove it with all that belongs to it."""
    for file in system.paths.local.glob("the-loop.db*"):
        file.unlink()


def empty_database(system: System) -> None:
    """Cut it to nothing."""
    no_database(system)
    system.paths.database.touch()


def damaged_database(system: System) -> None:
    """Write over what no command but a check reads."""
    whole = system.paths.database.read_bytes()
    system.paths.database.write_bytes(whole[: len(whole) // 2] + b"\x55" * (len(whole) - len(whole) // 2))


@pytest.mark.parametrize(
    ("harm", "told"),
    [(no_database, "not there any more"), (empty_database, "is empty"), (damaged_database, "the database is damaged")],
)
def test_status_tells_of_a_database_that_was_lost_or_damaged(
    terminal: Terminal, harm: Callable[[System], None], told: str
) -> None:
    """In a row of its own that names the file and the remedy; asking twice changes nothing."""
    harm(recorded(terminal))

    for _ in range(2):
        assert terminal.run("status", "--json") == 1
        [row] = [row for row in terminal.json["services"] if row["name"] == "database"]
        assert row["running"] is False
        assert str(terminal.paths.database) in row["detail"]
        assert told in row["detail"]
        assert "put it back" in row["detail"] or "move the file aside" in row["detail"]


def test_status_asks_for_no_database_where_no_session_ever_ran(terminal: Terminal) -> None:
    """Nothing is lost there."""
    terminal.run("status", "--json")

    assert [row["name"] for row in terminal.json["services"]] == ["service"]


def test_a_database_that_is_begun_anew_is_told_in_the_event_log(terminal: Terminal) -> None:
    """Whatever makes it: what waited in the old one is lost."""
    no_database(recorded(terminal))

    terminal.run("standing", "stop", "scribe")
    terminal.run("events", "--json")

    found = [json.loads(line) for line in terminal.out.splitlines()]
    [begun] = [event for event in found if event["event"] == "service.database_begun"]
    assert str(terminal.paths.database) in begun["detail"]


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_status_tells_that_nothing_can_be_written(terminal: Terminal) -> None:
    """Looking needs no room, but nothing else works: the row names the folder, the reason and what helps."""
    recorded(terminal)

    with no_room():
        code = terminal.run("status", "--json")

    [row] = [row for row in terminal.json["services"] if row["name"] == "database"]
    assert (code, row["running"]) == (1, False)
    assert f"{terminal.paths.local}: cannot write into the folder: File too large" in row["detail"]
    assert "raise the limit" in row["detail"]
    assert not list(terminal.paths.local.glob(".room*"))
