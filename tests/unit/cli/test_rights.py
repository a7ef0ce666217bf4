"""A command inside a session's pane is that agent's: it reads and speaks, and does nothing else."""

from datetime import UTC, datetime

import pytest

from core.base.files import private_folder
from core.model.session import Definition, SessionRecord, Status
from core.store.records import Records
from tests.unit.cli.conftest import Terminal

INSTANCE = "i-of-the-agent"


@pytest.fixture
def inside(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Give the terminal of the agent `builder`."""
    private_folder(terminal.paths.records)
    record = SessionRecord(
        name="builder",
        uid="s-builder",
        definition=Definition("builder"),
        created_at=datetime.now(UTC),
        instance_id=INSTANCE,
        status=Status.RUNNING,
    )
    Records(terminal.paths).write(record)
    monkeypatch.setenv("THE_LOOP_INSTANCE", INSTANCE)
    return terminal


@pytest.mark.parametrize(
    "words",
    [("standing", "list"), ("standing", "get", "scribe"), ("events",), ("status",), ("standing", "queue", "scribe")],
)
def test_an_agent_may_look(inside: Terminal, words: tuple[str, ...]) -> None:
    """What reads is answered."""
    inside.run(*words, "--json")

    assert "error" not in inside.out.partition("\n")[0]
    assert inside.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("start",),
        ("stop",),
        ("restart",),
        ("serve",),
        ("standing", "start"),
        ("standing", "start", "scribe"),
        ("standing", "stop", "scribe"),
        ("standing", "restart", "scribe"),
        ("standing", "create", "extra"),
        ("standing", "delete", "builder"),
        ("standing", "pause", "builder"),
        ("standing", "resume", "builder"),
        ("standing", "interrupt", "scribe"),
        ("standing", "cancel", "m-1"),
        ("standing", "confirm", "m-1"),
        ("standing", "attach", "builder"),
        ("standing", "attach", "builder", "--write"),
        ("fleet", "init"),
        ("fleet", "invite", "lap"),
        ("fleet", "join"),
        ("fleet", "list"),
        ("fleet", "leave"),
        ("fleet", "evict", "lap"),
    ],
    ids=" ".join,
)
def test_an_agent_may_not_change_sessions(inside: Terminal, words: tuple[str, ...]) -> None:
    """Every such verb is refused with 1, and the remedy is its operator."""
    code = inside.run(*words, "--json")

    assert code == 1
    assert inside.json["error"]["code"] == "not_permitted"
    assert "operator" in inside.json["error"]["remedy"]


def test_an_agent_may_not_run_a_demo(inside: Terminal) -> None:
    """A demo starts a session, so it is refused, too."""
    code = inside.run("demo", "--json")

    assert code == 1
    assert inside.json["error"]["code"] == "not_permitted"
    assert not [*inside.folder.rglob("demos")]


def test_an_agent_may_not_write_the_configuration(inside: Terminal) -> None:
    """It names the programs that run; an override writes it, and is written down where the default has its log."""
    config = inside.config = inside.folder / "new" / "cli-config.yaml"
    refused = inside.run("config", "init", "--json")
    code, there = inside.json["error"]["code"], config.exists()
    written = inside.run("--as-operator", "config", "init", "--json")

    assert (refused, code, there) == (1, "not_permitted", False)
    assert (written, config.exists()) == (0, True)
    [log] = inside.folder.rglob("events.jsonl")
    assert '"detail": "configure"' in log.read_text()


def test_an_override_is_obeyed_and_written_down(inside: Terminal) -> None:
    """--as-operator acts as the operator; the event log names the instance and the verb."""
    code = inside.run("--as-operator", "standing", "stop", "scribe", "--json")
    inside.run("events", "--json")

    override = '"event": "service.operator_override"'
    [line] = [line for line in inside.out.splitlines() if override in line]
    assert code == 0
    assert INSTANCE in line
    assert '"detail": "stop"' in line


def test_an_agent_cannot_speak_in_another_name(inside: Terminal) -> None:
    """--actor and --raw are the operator's."""
    named = inside.run("standing", "say", "scribe", "--text", "x", "--actor", "ann", "--json")
    first = inside.json["error"]["code"]
    raw = inside.run("standing", "say", "scribe", "--text", "x", "--raw", "--json")

    assert (named, first) == (2, "invalid_value")
    assert (raw, inside.json["error"]["code"]) == (1, "not_permitted")


def test_an_instance_that_nobody_knows_is_an_agent_all_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable alone decides: a stale one gives no rights."""
    monkeypatch.setenv("THE_LOOP_INSTANCE", "i-long-gone")

    code = terminal.run("standing", "start", "scribe", "--json")

    assert (code, terminal.json["error"]["code"]) == (1, "not_permitted")


@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_override_stands_anywhere(inside: Terminal, place: int) -> None:
    """Before the verb, between its words or behind it."""
    words = ["standing", "stop", "scribe"]

    code = inside.run(*words[:place], "--as-operator", *words[place:])

    assert code == 0
