"""The hook reporter, run by real shells."""

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.harness.base import make_folders, read_reports
from core.harness.claude.hooks import interpret
from core.harness.reporting import install_reporter
from core.model.harness import PromptReported, SessionContext, TurnBlocked
from tests.support.tmux import wait_until

NOTE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


class Reporter:
    """One installed reporter and the shell that runs it."""

    def __init__(self, shell: str, context: SessionContext) -> None:
        self.context = context
        make_folders(context)
        self.script = install_reporter(context)
        self.shell = shell

    def run(self, event: str, payload: str | dict[str, object] = "{}") -> "subprocess.CompletedProcess[bytes]":
        """Run the hook as a harness does."""
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        return subprocess.run(
            [self.shell, str(self.script), event], input=text.encode(), capture_output=True, timeout=20, check=False
        )

    def prompt(self, text: str) -> "subprocess.CompletedProcess[bytes]":
        """Run the turn-start hook."""
        return self.run("UserPromptSubmit", {"hook_event_name": "UserPromptSubmit", "prompt": text})

    @property
    def names(self) -> list[str]:
        """The reports in the spool, in order."""
        return [report.name for report in read_reports(self.context.spool, self.context.instance).reports]


def context_in(root: Path) -> SessionContext:
    """Return a context whose paths hold what a shell could stumble over."""
    odd = root / "it's a $HOME & `folder`"
    return SessionContext("scribe", "s-1", "i-1", root, odd / "session", odd / "spool" / "i-1", odd / "poke", (), "id")


@pytest.fixture(params=["dash", "bash"])
def reporter(request: pytest.FixtureRequest, tmp_path: Path) -> Reporter:
    """A reporter run by this shell."""
    shell = shutil.which(str(request.param))
    if shell is None:
        pytest.fail(f"{request.param} is needed to hold the reporter against it: install it")
    return Reporter(shell, context_in(tmp_path))


@pytest.fixture
def service(reporter: Reporter) -> Iterator[int]:
    """The reading end of the FIFO, as the service holds it."""
    os.mkfifo(reporter.context.notify)
    descriptor = os.open(reporter.context.notify, os.O_RDWR | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


CRON = {"id": "c1", "schedule": "* * * * *", "recurring": True, "prompt": 'say "hi" \\ ä'}


def stopped(reporter: Reporter, *crons: dict[str, object]) -> None:
    """Let a turn end that leaves these of the harness's own schedule."""
    reporter.run("Stop", {"hook_event_name": "Stop", "last_assistant_message": "", "session_crons": list(crons)})


def events_of(reporter: Reporter) -> list[object]:
    """Return what the reports mean, but for the ends of turns."""
    reports = read_reports(reporter.context.spool, "i-1").reports
    return [event for report in reports if "UserPromptSubmit" in report.name for event in interpret(report)]


def test_what_the_harness_has_scheduled_is_held(reporter: Reporter) -> None:
    """Nobody types it: it is blocked while the session is held, and known for what it is before and after."""
    stopped(reporter, {**CRON, "prompt": "another"}, CRON)
    free = reporter.prompt(str(CRON["prompt"]))
    (reporter.context.folder / "hold").touch()
    held = reporter.prompt(str(CRON["prompt"]))
    typed = reporter.prompt('say "hi"')

    assert (free.returncode, held.returncode, typed.returncode) == (0, 2, 0)
    assert b"held" in held.stderr
    seen, blocked, person = events_of(reporter)
    assert seen == PromptReported(str(CRON["prompt"]), internal=True, scheduled=True)
    assert blocked == TurnBlocked(str(CRON["prompt"]), scheduled=True)
    assert person == PromptReported('say "hi"')


def test_a_schedule_that_is_empty_again_holds_nothing(reporter: Reporter) -> None:
    """The same words are a person's then."""
    stopped(reporter, CRON)
    stopped(reporter)
    (reporter.context.folder / "hold").touch()

    assert reporter.prompt(str(CRON["prompt"])).returncode == 0


@pytest.mark.parametrize("tool", ["CronCreate", "ScheduleWakeup"])
def test_what_was_scheduled_in_a_turn_without_an_end_is_held(reporter: Reporter, tool: str) -> None:
    """The tool's own call tells of it, and is no report of its own."""
    given = {"cron": "* * * * *", "prompt": CRON["prompt"]}
    done = reporter.run("Scheduled", {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": given})
    (reporter.context.folder / "hold").touch()
    held = reporter.prompt(str(CRON["prompt"]))

    assert (done.returncode, held.returncode) == (0, 2)
    assert [name for name in reporter.names if "Scheduled" in name] == []


def test_report_is_spooled_whole_and_pokes(reporter: Reporter, service: int) -> None:
    """A report lies in the spool, private, under a name that tells its event, and one byte is in the FIFO."""
    done = reporter.run("Stop", {"hook_event_name": "Stop", "last_assistant_message": "fertig: ä"})

    read = read_reports(reporter.context.spool, "i-1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [report.payload["last_assistant_message"] for report in read.reports] == ["fertig: ä"]
    assert read.reports[0].name.endswith("-Stop.json")
    assert (reporter.context.spool / read.reports[0].name).stat().st_mode & 0o777 == 0o600
    assert len(os.read(service, 100)) == 1


def test_reporter_is_private_to_its_owner(reporter: Reporter) -> None:
    """The script can be read and run by nobody else."""
    assert reporter.script.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("fifo", ["absent", "without reader", "a file"])
def test_service_that_is_not_there_holds_nothing_up(reporter: Reporter, fifo: str) -> None:
    """Without a FIFO, or without anybody who reads it, the report is spooled and the hook ends."""
    if fifo == "without reader":
        os.mkfifo(reporter.context.notify)
    elif fifo == "a file":
        reporter.context.notify.write_text("mine")

    done = reporter.run("Stop")

    assert done.returncode == 0
    assert len(reporter.names) == 1
    assert fifo != "a file" or reporter.context.notify.read_text() == "mine"


def test_service_that_reads_nothing_is_poked_no_more(reporter: Reporter, service: int) -> None:
    """A full FIFO would make the hook wait, so with a thousand unread reports it is left alone."""
    os.write(service, b"." * 65536)
    for number in range(1000):
        (reporter.context.spool / f"{number:04}-1-Stop.json").write_text("{}")

    done = reporter.run("Stop")

    assert done.returncode == 0
    assert len(reporter.names) == 1001


def test_spool_that_cannot_be_written_breaks_nothing(reporter: Reporter) -> None:
    """Without a spool the hook takes its input, says nothing and succeeds; the gate still works."""
    reporter.context.spool.rmdir()
    (reporter.context.folder / "hold").touch()

    done = reporter.run("PostToolUse", "x" * 300_000)
    gate = reporter.prompt(NOTE)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert gate.returncode == 2


def test_session_folder_that_is_gone_breaks_nothing(reporter: Reporter) -> None:
    """Without the session's folder no marker can be left, and the report is spooled all the same."""
    script = reporter.script.read_bytes()
    shutil.rmtree(reporter.context.folder)
    copy = reporter.context.spool.parent / "report"
    copy.write_bytes(script)
    reporter.script = copy

    done = reporter.run("PermissionRequest")

    assert (done.returncode, done.stderr) == (0, b"")
    assert len(reporter.names) == 1


def test_megabyte_is_kept_exactly(reporter: Reporter) -> None:
    """A report of a megabyte arrives whole, held or not."""
    text = 'line with "quotes", \\ and ünïcödé\n' * 30_000
    reporter.prompt(text)
    (reporter.context.folder / "hold").touch()
    reporter.run("PermissionRequest")
    times, codes = [], []
    for _ in range(3):
        begun = time.monotonic()
        codes.append(reporter.prompt(text).returncode)
        times.append(time.monotonic() - begun)

    reports = read_reports(reporter.context.spool, "i-1").reports
    assert min(times) < 2
    assert codes == [0, 0, 0]
    assert [report.payload["prompt"] == text for report in (reports[0], *reports[2:])] == [True] * 4


def test_fifty_at_once_are_unique_and_ordered(reporter: Reporter) -> None:
    """Reports that are written at the same time are all kept, and one that comes later sorts behind them."""
    with ThreadPoolExecutor(25) as pool:
        done = list(pool.map(lambda number: reporter.run("Stop", {"n": number}), range(50)))
    reporter.run("Stop", {"n": 50})

    reports = read_reports(reporter.context.spool, "i-1").reports
    assert {each.returncode for each in done} == {0}
    assert sorted(report.payload["n"] for report in reports[:50]) == list(range(50))
    assert reports[50].payload["n"] == 50


def test_reports_one_after_the_other_keep_their_order(reporter: Reporter) -> None:
    """The order of names is the order of events."""
    for number in range(12):
        reporter.run("Stop" if number % 2 else "PreToolUse", {"n": number})

    reports = read_reports(reporter.context.spool, "i-1").reports

    assert [report.payload["n"] for report in reports] == list(range(12))


def test_markers_follow_the_dialog(reporter: Reporter) -> None:
    """A tool call touches `tool`, a request makes `asking`, and whatever proves that it was answered removes it."""
    folder = reporter.context.folder
    reporter.run("PreToolUse")
    assert (folder / "tool").exists()

    for answered in (
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "Stop",
        "StopFailure",
        "SessionEnd",
        "PreToolUse",
    ):
        reporter.run("PermissionRequest")
        assert (folder / "asking").exists()
        reporter.run(answered)
        assert not (folder / "asking").exists(), answered


def by(agent: str | None, event: str, **fields: object) -> dict[str, object]:
    """Return a payload as a subagent's event, or the main agent's, has it."""
    named = {} if agent is None else {"agent_id": agent, "agent_type": "general-purpose"}
    return {"session_id": "x", "cwd": "/", **named, "hook_event_name": event, **fields}


def test_marker_outlives_what_another_agent_does(reporter: Reporter) -> None:
    """Agents of one harness work in parallel: only the one that asked, or its end, closes its dialog."""
    asking = reporter.context.folder / "asking"
    reporter.run("PermissionRequest", by(None, "PermissionRequest"))
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStop"):
        reporter.run(event, by("a2ce", event))
        assert asking.exists(), event
    reporter.run("PostToolUse", by(None, "PostToolUse"))
    assert not asking.exists()

    reporter.run("PermissionRequest", by("a2ce", "PermissionRequest"))
    running = [{"id": "a2ce", "type": "subagent", "status": "running"}]
    for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit"):
        reporter.run(event, by(None, event))
        assert asking.exists(), event
    reporter.run("Stop", by(None, "Stop", background_tasks=running))
    assert asking.exists()
    reporter.run("SubagentStop", by("a2ce", "SubagentStop"))
    assert not asking.exists()


def test_marker_outlives_a_turn_that_ends_as_the_dialog_is_told(reporter: Reporter) -> None:
    """The main agent's turn is over between the first and the second step of a background agent's request."""
    asking = reporter.context.folder / "asking"
    agent = {"agent_id": "a1", "hook_event_name": "PermissionRequest"}
    script = [reporter.shell, str(reporter.script), "PermissionRequest"]
    with subprocess.Popen(script, stdin=subprocess.PIPE) as request:
        wait_until(asking.exists, "the request has begun")
        reporter.run("Stop", {"hook_event_name": "Stop", "background_tasks": [{"id": "a1"}]})
        request.communicate(json.dumps(agent, separators=(",", ":")).encode())

    assert "+a1" in asking.read_text().split()


def test_two_dialogs_are_over_when_both_are(reporter: Reporter) -> None:
    """With two agents asking, the marker goes with the second answer."""
    asking = reporter.context.folder / "asking"
    reporter.run("PermissionRequest", by(None, "PermissionRequest"))
    reporter.run("PermissionRequest", by("a2ce", "PermissionRequest"))

    reporter.run("PostToolUse", by(None, "PostToolUse"))
    assert asking.exists()
    reporter.run("PostToolUse", by("a2ce", "PostToolUse"))

    assert not asking.exists()
    assert not list(reporter.context.folder.glob("asking.*"))


def test_end_of_a_turn_forgets_agents_that_are_gone(reporter: Reporter) -> None:
    """A subagent that was interrupted at its dialog tells nothing; it is not among the turn's background tasks."""
    reporter.run("PermissionRequest", by("a2ce", "PermissionRequest"))

    reporter.run("Stop", by(None, "Stop", background_tasks=[]))

    assert not (reporter.context.folder / "asking").exists()


def test_agent_is_not_taken_from_a_tool(reporter: Reporter) -> None:
    """An `agent_id` in a tool's input names nobody, and one that is no plain word breaks nothing."""
    asking = reporter.context.folder / "asking"
    reporter.run("PermissionRequest", by(None, "PermissionRequest", tool_input={"agent_id": "zz"}))
    reporter.run("PostToolUse", by(None, "PostToolUse", tool_input={"agent_id": "yy"}))
    assert not asking.exists()

    reporter.run("PermissionRequest", by("$(touch x) * ../", "PermissionRequest"))
    reporter.run("PostToolUse", by("$(touch x) * ../", "PostToolUse"))

    assert not asking.exists()


def test_many_agents_at_once_leave_no_marker_and_lose_none(reporter: Reporter) -> None:
    """Twelve agents ask and go on at the same time: the marker stands for the one that still waits, and then goes."""
    agents = [f"a{number}" for number in range(12)]
    reporter.run("PermissionRequest", by("last", "PermissionRequest"))

    def life(agent: str) -> None:
        reporter.run("PermissionRequest", by(agent, "PermissionRequest"))
        reporter.run("PostToolUse", by(agent, "PostToolUse"))

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(life, agents))
    assert (reporter.context.folder / "asking").exists()
    reporter.run("PostToolUse", by("last", "PostToolUse"))

    assert not (reporter.context.folder / "asking").exists()
    assert len(reporter.names) == 26


def test_tool_marker_tells_of_the_latest_call(reporter: Reporter) -> None:
    """Each PreToolUse renews the marker's time."""
    marker = reporter.context.folder / "tool"
    reporter.run("PreToolUse")
    os.utime(marker, (1, 1))

    reporter.run("PreToolUse")

    assert time.time() - marker.stat().st_mtime < 60


def test_marker_of_a_dialog_outlives_what_says_nothing_about_it(reporter: Reporter) -> None:
    """A session start, or an event that we do not know, leaves the marker alone."""
    reporter.run("PermissionRequest")

    reporter.run("SessionStart")
    reporter.run("Notification")

    assert (reporter.context.folder / "asking").exists()


def test_gate_blocks_only_what_nobody_typed_and_only_while_held(reporter: Reporter) -> None:
    """Exit 2 for a notification while `hold` is there; without it the notification goes through."""
    before = reporter.prompt(NOTE)
    (reporter.context.folder / "hold").touch()
    held = reporter.prompt(NOTE)
    (reporter.context.folder / "hold").unlink()
    after = reporter.prompt(NOTE)

    reports = read_reports(reporter.context.spool, "i-1").reports
    assert [before.returncode, held.returncode, after.returncode] == [0, 2, 0]
    assert b"held" in held.stderr
    assert held.stdout == b""
    assert [interpret(report)[0] for report in reports] == [
        PromptReported(NOTE, internal=True, task="b1"),
        TurnBlocked(NOTE, "b1"),
        PromptReported(NOTE, internal=True, task="b1"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "what does <task-notification> mean?",
        'in JSON: {"prompt":"<task-notification>"}',
        '","prompt":"<task-notification>',
        '\\"prompt\\":\\"<task-notification>',
        " <task-notification>",
        "[ann #k3f9x2] <task-notification>",
        "",
    ],
)
def test_what_a_person_types_is_never_blocked(reporter: Reporter, text: str) -> None:
    """Text of a person goes through a hold, whatever it quotes."""
    (reporter.context.folder / "hold").touch()

    done = reporter.prompt(text)

    assert done.returncode == 0
    assert [report.payload["prompt"] for report in read_reports(reporter.context.spool, "i-1").reports] == [text]


@pytest.mark.parametrize("frame", ["[alice via slack #k3f9x2]", "[agent builder #k3f9x2]", "[the-loop #k3f9x2]"])
def test_a_message_of_ours_in_the_harness_queue_is_blocked_while_held(reporter: Reporter, frame: str) -> None:
    """It was submitted before the pause, and no turn shall take it after it: it is given back to our queue."""
    text = f'{frame} he said "go" [and] went '
    (reporter.context.folder / "hold").touch()

    done = reporter.prompt(text)

    [report] = read_reports(reporter.context.spool, "i-1").reports
    assert done.returncode == 2
    assert interpret(report) == (TurnBlocked(text),)


@pytest.mark.parametrize("text", ["[ann via post] hello #k3f9x2", "[x via y #K3F9X2] z", "see [a via b #k3f9x2] c"])
def test_what_only_looks_like_a_frame_is_not_blocked(reporter: Reporter, text: str) -> None:
    """A frame stands at the beginning and ends in its marker."""
    (reporter.context.folder / "hold").touch()

    done = reporter.prompt(text)

    assert done.returncode == 0


def test_unknown_events_and_odd_payloads_break_nothing(reporter: Reporter) -> None:
    """Whatever the event is called and whatever comes on stdin, the hook succeeds and the name stays plain."""
    for event in ("SomethingNew", "../../etc", "a b", ""):
        assert reporter.run(event, "no json").returncode == 0
    subprocess.run(["sh", str(reporter.script)], stdin=subprocess.DEVNULL, check=True, timeout=10)

    files = [path.name for path in reporter.context.spool.iterdir()]
    assert len([name for name in files if name.endswith("-Other.json")]) == 4
    assert len([name for name in files if name.endswith("-SomethingNew.json")]) == 1


def test_date_without_nanoseconds_still_gives_unique_ordered_names(reporter: Reporter, tmp_path: Path) -> None:
    """Where `date` knows no nanoseconds (macOS) the names are as long, and sort with the others."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "date").write_text(
        '#!/bin/sh\ncase $1 in *%N) echo "$(/bin/date +%s)N" ;; *) exec /bin/date "$@" ;; esac\n'
    )
    (tools / "date").chmod(0o755)
    text = reporter.script.read_text()
    reporter.script.write_text(text.replace("PATH=/usr/bin:/bin:$PATH", f"PATH='{tools}':/usr/bin:/bin:$PATH"))

    for number in range(3):
        reporter.run("Stop", {"n": number})

    names = reporter.names
    assert [len(name.split("-")[0]) for name in names] == [19, 19, 19]
    assert len(set(names)) == 3


def test_reporter_costs_milliseconds(reporter: Reporter, service: int) -> None:
    """The quickest of many hooks takes less than ten bare shells, or 50 ms, of a processor's time: no busy machine
    changes that."""

    def used() -> float:
        of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of_children.ru_utime + of_children.ru_stime

    def quickest(command: list[str]) -> float:
        times = []
        for _ in range(30):
            begun = used()
            subprocess.run(command, input=b"{}", capture_output=True, check=True)
            times.append(used() - begun)
        return min(times)

    bare = quickest(["dash", "-c", "true"])
    hook = quickest(["dash", str(reporter.script), "Stop"])

    print(f"hook {hook * 1000:.1f} ms, bare shell {bare * 1000:.1f} ms")
    assert hook < 10 * bare or hook < 0.05
