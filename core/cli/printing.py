"""What a command prints: JSON alone on standard output, or text for people. Everything else goes to standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

from core.base.errors import CoreError, Refused
from core.base.text import plain

if TYPE_CHECKING:
    from core.lifecycle.history import History
    from core.model.health import Finding

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_NOT_THERE = frozenset({"dead", "absent", "foreign"})
_REASON = 60  #: characters of a mark's reason that a table shows
_COLUMNS = ("host", "name", "status", "live", "activity", "queued", "loops", "harness", "cost", "outcome", "detail")


_RUNNING = {True: "running", False: "not running", None: "unknown"}  #: None: it could not be asked
_LOOP_COLUMNS = ("id", "session", "declared", "cadence", "status", "held", "runs", "last", "next", "instruction")
_HOST_COLUMNS = ("host", "state", "gateway", "version", "seen")
_QUEUE_COLUMNS = ("id", "kind", "actor", "age", "state", "length", "detail", "text")


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, where an error came before its options were read."""
    return any(word in ("--json", "--format=json") for word in arguments) or ("--format", "json") in pairwise(arguments)


def named_config(arguments: Sequence[str]) -> str | None:
    """Return the file that `--config` names last on a command line, before or after its options were read."""
    named = None
    for word, following in pairwise((*arguments, "")):
        if word == "--":
            break  # no options stand behind it
        if word == "--config":
            named = following
        elif word.startswith("--config="):
            named = word.partition("=")[2]
    return named


class OutputBroken(Exception):
    """Standard output cannot be written: there is nowhere to print an error's JSON either."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the answer cannot be written to standard output: {error.strerror}; the command may have done its work: "
            "look before you repeat it, and check where its output goes"
        )


def open_streams() -> None:
    """Make standard input, output and error usable, whatever this process was started with.

    One that is closed becomes the null device: the next file that is opened would get its number else, and be written
    to by whoever prints. What an encoding cannot show, and half of a character, is shown as an escape.
    """
    import os

    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as we do
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write out what was printed. Raises OutputBroken, and BrokenPipeError where nobody reads any more."""
    _written(sys.stdout.flush)


def discard_output() -> None:
    """Let what is printed from now on go nowhere: the interpreter would complain of it once more as it ends."""
    _discard(sys.stdout)


def settle_errors() -> None:
    """Write out what was said to standard error, or let it go: the interpreter would end with a code of its own."""
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def print_json(value: Any) -> None:
    """Print one JSON value, indented, to standard output. Raises OutputBroken."""
    shows_all = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(value, indent=2, ensure_ascii=not shows_all)
    _written(lambda: sys.stdout.write(text + "\n"))


def print_line(text: str) -> None:
    """Print a line for people to standard output, without what a terminal acts on: an agent may have written it.

    Raises OutputBroken.
    """
    _written(lambda: sys.stdout.write(plain(text) + "\n"))


def _written(write: Callable[[], object]) -> None:
    try:
        write()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputBroken(error) from error


before_warning: list[Callable[[], None]] = []  #: called before a line on standard error: a progress line goes away


def warn(text: str) -> None:
    """Print a line to standard error, without what a terminal would act on; one that cannot be written is lost."""
    for clear in before_warning:
        clear()
    with suppress(OSError):
        sys.stderr.write(plain(text) + "\n")


def has_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether colours may be written: to a terminal alone, and not where $NO_COLOR says no (no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"


_COLOURS = {"ok": "32", "warning": "33", "failed": "31", "unknown": "35"}  #: of ECMA-48, by state


def print_findings(findings: Sequence[Finding], environ: Mapping[str, str]) -> None:
    """Print a line for each finding, and its remedy below it where something is to be done; then how many there are."""
    from collections import Counter

    coloured = has_colours(sys.stdout, environ)
    for finding in findings:
        _print_finding(finding, coloured=coloured)
    counts = Counter(finding.state.value for finding in findings)
    print_line(", ".join(f"{counts[state]} {state}" for state in _COLOURS if counts[state]))


def _print_finding(finding: Finding, *, coloured: bool) -> None:
    state, said = finding.state.value, plain(f"{finding.name}: {finding.detail}")
    word = f"\x1b[{_COLOURS[state]}m{state:<7}\x1b[0m" if coloured else f"{state:<7}"
    _written(lambda: sys.stdout.write(f"{word}  {said}\n"))
    if finding.remedy and state != "ok":
        print_line(f"         -> {finding.remedy}")


def error_body(error: CoreError, exact: Callable[[str], str] = str) -> dict[str, Any]:
    """Return `{"error": {"code", "message", "remedy"}}`; `exact` makes the commands in it such as can be typed."""
    return {"error": {"code": error.code, "message": exact(error.message), "remedy": exact(error.remedy)}}


def exit_code(error: CoreError) -> int:
    """Return 2 for bad input and 1 for everything else; a refusal by state is never bad input."""
    if isinstance(error, Refused):
        return EXIT_FAILED
    return EXIT_USAGE if isinstance(error, ValueError) else EXIT_FAILED


def _cell(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if column == "cost":
        from core.model.working import cost_of

        return cost_of(row["working"]) if row.get("working") else ""
    if column == "status" and row.get("phase") == "deleting":
        return "deleting"
    if column == "status" and value == "running" and row.get("live") in _NOT_THERE:
        value = "should run"
    if column == "activity" and row.get("hooks") == "silent":
        value = f"{value}, hooks-silent"
    if column == "status" and row.get("hold"):
        return f"{value} ({_held(row['hold'], value)})"
    return "" if value in (None, 0, "") else _in_one_line(str(value))


def _in_one_line(text: str) -> str:
    """Return the text without line ends: whoever wrote it would write rows of ours else."""
    return " ".join(text.splitlines())


def _held(hold: Mapping[str, Any], status: Any) -> str:
    """Return what a table says of a mark: `held: lunch`, or `paused: lunch` where the status does not tell its kind."""
    word = "held" if hold["kind"] == status else hold["kind"]
    reason = " ".join(hold["reason"].split())
    if len(reason) > _REASON:
        reason = f"{reason[:_REASON]}…"
    return f"{word}: {reason}" if reason else str(word)


def print_row(row: Mapping[str, Any]) -> None:
    """Print one row, a key a line, in words; what is empty or not known is left out."""
    words = {key: _in_one_line(_words(value)) for key, value in _with_work(row).items()}
    told = {key: value for key, value in words.items() if value}
    width = max(len(key) for key in told)
    for key, value in told.items():
        print_line(f"{key.ljust(width)}  {value}")


def _with_work(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with what its agent is doing part by part."""
    told: dict[str, Any] = {}
    for key, value in row.items():
        if key == "working" and value is not None:
            from core.model.working import described  # a list shows nothing of it

            told |= described(value)
        else:
            told[key] = value
    return told


def _graded(capabilities: Mapping[str, str]) -> Iterator[str]:
    """Yield `proven: boot hook, mode`, a text for each grade that there is."""
    for grade in ("missing", "proven", "guessed"):
        names = [name for name, found in capabilities.items() if found == grade]
        if names:
            yield f"{grade}: {', '.join(names)}"


def _words(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case {"boot hook": _}:
            return "; ".join(_graded(value))
        case dict() if not value or all(isinstance(place, dict) for place in value.values()):
            return "; ".join(f"{chat}: {place['channel']}, {place['thread']}" for chat, place in value.items())
        case {"kind": kind, "policy": policy, "by": by, "reason": reason, "at": at}:
            hard = ", at once" if kind == "paused" and policy == "hard" else ""
            return f"{kind}{hard} by {by}, since {at}{f': {reason}' if reason else ''}"
        case _:
            return str(value)


def print_rows(rows: Sequence[Mapping[str, Any]], exact: Callable[[str], str]) -> None:
    """Print rows as a table without the columns that are empty in all of them.

    `exact` makes a command such that it can be typed.
    """
    if not rows:
        print_line(exact("no standing sessions; `the-loop standing create NAME` makes one"))
        return
    _print_table(rows, _COLUMNS)


def _print_table(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> None:
    columns = [column for column in wanted if any(_cell(row, column) for row in rows)]
    table = [[column.upper() for column in columns]]
    table += [[_cell(row, column) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in table) for index in range(len(columns))]
    for line in table:
        print_line("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_hosts(hosts: Sequence[Mapping[str, Any]]) -> None:
    """Print the hosts of the fleet as a table."""
    _print_table([_host_row(host) for host in hosts], _HOST_COLUMNS)


def _host_row(host: Mapping[str, Any]) -> Mapping[str, Any]:
    from datetime import datetime  # here, since only a fleet's list needs it

    from core.base.text import moment_text

    age = host["ageSeconds"]
    seen = "never" if age is None else f"{moment_text(datetime.fromisoformat(host['hostSeen']))}, {age} s ago"
    ended = ", its service has ended" if host["stopped"] and age is not None else ""
    part = "speaks with the chat" if host["speaks"] else "may be the gateway" if host["gateway"] else ""
    return {**host, "seen": f"{seen}{ended}", "gateway": part}


def print_queue(queue: Mapping[str, Any]) -> None:
    """Print a session's queue as a table, in its order."""
    if not queue["messages"]:
        print_line(f"nothing waits for {queue['name']}")
        return
    print_line(f"{queue['name']}: {len(queue['messages'])} (at most {queue['limit']} may wait)")
    rows = [{**message, "age": f"{message['ageSeconds']} s"} for message in queue["messages"]]
    _print_table(rows, _QUEUE_COLUMNS)


def print_loops(answer: Mapping[str, Any]) -> None:
    """Print what was done, or how many loops there are, and the loops as a table where a list was asked for."""
    print_line(answer["said"])
    if answer["loop"] is None and answer["loops"]:
        _print_table([_loop_row(loop) for loop in answer["loops"]], _LOOP_COLUMNS)


def _loop_row(loop: Mapping[str, Any]) -> Mapping[str, Any]:
    cadence = loop["interval"] or (f"{loop['cron']} ({loop['timeZone']})" if loop["cron"] else "dynamic")
    fires = loop["nextRunAt"] is not None and loop["status"] == "active"
    instruction = " ".join(loop["instruction"].split())
    most = f" of {loop['maxRuns']}" if loop["maxRuns"] else ""
    return {
        **loop,
        "cadence": f"{cadence}, keep-alive" if loop["keepAlive"] else cadence,
        "runs": f"{loop['runCount']}{most}",
        "last": loop["lastResult"],
        "next": _next(loop["nextRunAt"]) if fires else "",
        "instruction": instruction if len(instruction) <= _REASON else f"{instruction[:_REASON]}…",
    }


def _next(at: str) -> str:
    """Return when a loop runs next, `at` in ISO 8601; what is due already waits for the run before it."""
    from core.base.clock import SystemClock, from_iso

    shown = f"{at[:19].replace('T', ' ')} UTC"
    return f"due since {shown}" if from_iso(at) <= SystemClock().now() else shown


def print_logs(logs: Mapping[str, Any]) -> None:
    """Print what ended first, then what lives, each under a line that says which it is.

    What a terminal showed has a mark before each line, so that none of it can be taken for such a line of ours.
    """
    ended = logs["ended"]
    if ended is not None:
        from core.model.restarting import explained

        how = ended["exit"] or {}
        words = explained(how.get("status"), how.get("signal"))
        print_line(f"--- ended {ended['at'] or 'not long ago'} ({words})")
        _print_marked(ended["output"])
    if logs["screen"] is not None:
        print_line("--- now")
        _print_marked(logs["screen"])
    if ended is None and logs["screen"] is None:
        print_line(f"nothing was kept of {logs['name']}")


def print_history(history: History, exact: Callable[[str], str]) -> None:
    """Print a session's conversations, the latest first, and the sessions that were deleted."""
    if history.conversation:
        turns = ", no turn yet" if history.new else ""
        print_line(f"now     {history.conversation}  ({history.harness}{turns})")
    for left in reversed(history.earlier):
        print_line(
            f"before  {left.id}  ({left.harness}), left {left.at:%Y-%m-%d %H:%M} UTC: {_in_one_line(left.reason)}"
        )
    if history.earlier:
        print_line(exact(f"to take one up: `the-loop standing start {history.name} --conversation ID`"))
    for gone in history.deleted:
        print_line(f"deleted {gone.name}, {gone.at[:16].replace('T', ' ')} UTC by {gone.by}")
        print_line(f"         -> {exact(gone.remedy) or 'its conversation is not known'}")
    if not (history.conversation or history.earlier or history.deleted):
        print_line(f"{history.name} has had no conversation yet" if history.name else "no session was deleted")


def print_window(window: Mapping[str, Any], screen: str) -> None:
    """Print what tmux tells of a window, then what its terminal shows; what is not ours has a mark, as in logs."""
    kept = f"{window['history']} rows of history (at most {window['historyLimit']})"
    alternate = "; its program draws on the alternate screen" if window["alternate"] else ""
    print_line(f"--- window {window['id']}: {window['columns']} columns, {window['rows']} rows, {kept}{alternate}")
    switched = {True: "on", False: "off"}
    for name, value in window["options"].items():
        _print_marked(f"{name}: {switched[value] if isinstance(value, bool) else value}")
    print_line("--- now")
    _print_marked(screen)


def _print_marked(text: str) -> None:
    for line in text.splitlines():
        print_line(f"| {line}".rstrip())


def print_services(services: Sequence[Mapping[str, Any]]) -> None:
    """Print the service rows, one a line."""
    for row in services:
        state = _RUNNING[row["running"]]
        pid = f" (pid {row['pid']})" if row.get("pid") else ""
        print_line(f"{row['name']}: {state}{pid}{_behind(row.get('detail') or '')}")


def print_harnesses(harnesses: Sequence[Mapping[str, Any]]) -> None:
    """Print which version of each program is installed, and what there is to say of it, one a line."""
    for row in harnesses:
        version, tried = row["version"] or "version unknown", row["tried"]
        range_tried = f"tried: {tried[0]} to {tried[-1]}" if tried else "tried: none"
        print_line(f"{row['name']}: {version} ({range_tried}){_behind(row['detail'])}")


def _behind(detail: str) -> str:
    return f": {detail}" if detail else ""
