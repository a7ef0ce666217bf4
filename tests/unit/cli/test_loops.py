"""`the-loop loop …`."""

from datetime import UTC, datetime

import pytest

from core.base.files import private_folder
from core.model.session import Definition, SessionRecord, Status
from core.store.records import Records
from tests.unit.cli.conftest import Terminal

KEYS = (
    "id", "session", "declared", "mode", "instruction", "interval", "cron", "timeZone", "keepAlive", "maxRuns",
    "status", "held", "runCount", "lastRunAt", "lastResult", "lastError", "nextRunAt", "reason",
    "createdBy", "createdAt",
)  # fmt: skip
MAKE = ("loop", "create", "builder", "--instruction", "look at it", "--interval", "5m")


@pytest.fixture
def house(terminal: Terminal) -> Terminal:
    """Give a terminal whose the-loop has the sessions builder and digger on record."""
    private_folder(terminal.paths.records)
    for name in ("builder", "digger"):
        record = SessionRecord(
            name, f"s-{name}", Definition(name), datetime.now(UTC), instance_id=f"i-{name}", status=Status.RUNNING
        )
        Records(terminal.paths).write(record)
    return terminal


def _made(terminal: Terminal, *words: str) -> str:
    assert terminal.run(*(words or MAKE), "--json") == 0
    return str(terminal.json["loop"]["id"])


def test_a_loops_life_on_the_command_line(house: Terminal) -> None:
    """Each verb answers with the loop, its session's loops and a sentence; exit 0."""
    loop_id = _made(house, *MAKE, "--keep-alive", "--max-runs", "9")
    made = house.json
    assert tuple(made["loop"]) == KEYS
    assert (made["loop"]["keepAlive"], made["loop"]["maxRuns"], made["loop"]["interval"]) == (True, 9, "5m")

    for words, said, status in (
        (("pause", loop_id, "--reason", "lunch"), "is paused", "paused"),
        (("resume", loop_id), "goes on", "active"),
        (("run", loop_id), "is due now", "active"),
        (("stop", loop_id, "--reason", "done"), "is stopped: done", "stopped"),
        (("stop", loop_id), "had ended before", "stopped"),
    ):
        assert house.run("loop", *words, "--json") == 0
        assert said in house.json["said"]
        assert house.json["loop"]["status"] == status
        assert [loop["id"] for loop in house.json["loops"]] == [loop_id]


def test_a_dynamic_loop_is_scheduled(house: Terminal) -> None:
    """--in takes a span or seconds."""
    loop_id = _made(house, "loop", "create", "builder", "--instruction", "look")

    assert house.run("loop", "schedule", loop_id, "--in", "90", "--reason", "soon") == 0

    assert house.out.startswith(f"{loop_id} runs again in 1m30s")


def test_a_list_is_a_table_or_json(house: Terminal) -> None:
    """Of one session with those that have ended, else the open ones of all; rows of the sessions count them."""
    kept, ended = _made(house), _made(house)
    other = _made(house, "loop", "create", "digger", "--instruction", "x", "--cron", "0 9 * * *", "--time-zone", "UTC")
    house.run("loop", "stop", ended)

    assert house.run("loop", "list", "--json") == 0
    assert {loop["id"] for loop in house.json["loops"]} == {kept, other}
    assert house.json["loop"] is None
    assert house.run("loop", "list", "builder") == 0
    assert house.out.splitlines()[0] == "1 open loop"
    assert [line.split()[0] for line in house.out.splitlines()[1:]] == ["ID", kept, ended]
    house.run("standing", "get", "builder", "--json")
    assert house.json["loops"] == 1
    house.run("standing", "list", "--json")
    assert {row["name"]: row["loops"] for row in house.json} == {"builder": 1, "digger": 1, "scribe": 0}


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("create", "builder", "--instruction", "x", "--interval", "soon"), 2, "invalid_value"),
        (("create", "builder", "--instruction", "x", "--keep-alive"), 2, "invalid_value"),
        (("create", "--instruction", "x", "--interval", "5m"), 2, "invalid_value"),
        (("create", "nobody", "--instruction", "x"), 1, "unknown_session"),
        (("create", "scribe", "--instruction", "x"), 1, "refused"),
        (("create", "builder"), 2, "usage"),
        (("list", "nobody"), 1, "unknown_session"),
        (("stop", "loop_zzzzzz"), 1, "unknown_loop"),
        (("schedule", "loop_zzzzzz", "--in", "5m"), 2, "usage"),
    ],
)
def test_what_is_refused_says_why(house: Terminal, words: tuple[str, ...], code: int, error: str) -> None:
    """Bad input is 2, an unknown name or a refusal by state 1."""
    assert house.run("loop", *words, "--json") == code
    assert house.json["error"]["code"] == error


def test_a_full_session_is_refused_by_state(house: Terminal) -> None:
    """Five are open by default."""
    for _ in range(5):
        _made(house)

    assert house.run(*MAKE, "--json") == 1
    assert house.json["error"]["code"] == "too_many_loops"


def test_an_agent_has_the_loops_of_its_own_session(house: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves NAME out; of other loops it learns nothing, unless its operator's rights are claimed and logged."""
    foreign = _made(house, "loop", "create", "digger", "--instruction", "x", "--interval", "5m")
    monkeypatch.setenv("THE_LOOP_INSTANCE", "i-builder")

    own = _made(house, "loop", "create", "--instruction", "look", "--interval", "5m", "--keep-alive")

    assert house.json["loop"]["createdBy"] == "agent:builder"
    assert house.run("loop", "list", "--json") == 0
    assert [loop["id"] for loop in house.json["loops"]] == [own]
    for words, code in ((("stop", foreign), "unknown_loop"), (("list", "digger"), "other_session")):
        assert house.run("loop", *words, "--json") == 1
        assert house.json["error"]["code"] == code
    assert house.run("--as-operator", "loop", "stop", foreign) == 0
    assert "service.operator_override" in house.paths.events.read_text()


def test_a_process_of_an_earlier_pane_has_no_loops(house: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session was started anew since, or is gone."""
    monkeypatch.setenv("THE_LOOP_INSTANCE", "i-earlier")

    assert house.run("loop", "create", "--instruction", "x", "--json") == 1
    assert "belongs to no session that runs now" in house.json["error"]["message"]


def test_the_list_names_the_zones_of_its_times(house: Terminal) -> None:
    """Times are UTC and say so, an expression has its own zone, and a paused loop shows no next run."""
    house.run("loop", "create", "builder", "--instruction", "x", "--cron", "0 9 * * *", "--time-zone", "Europe/Berlin")
    house.run("loop", "list")
    listed = house.out
    house.run("loop", "list", "--json")
    house.run("loop", "pause", house.json["loops"][0]["id"])
    house.run("loop", "list")

    assert "0 9 * * * (Europe/Berlin)" in listed
    assert " UTC" in listed
    assert " UTC" not in house.out
    assert "paused" in house.out
