"""A file with something wrong in it blinds nobody: what names a session works from its record."""

from datetime import UTC, datetime

import pytest

from core.domain.session import Definition, SessionRecord
from core.store.records import RecordFiles
from tests.unit.surfaces.conftest import Terminal

LOOK = (
    ("standing", "get", "scribe"),
    ("standing", "queue", "scribe"),
    ("events",),
    ("loop", "list"),
    ("loop", "list", "scribe"),
)
#: how each ends with a session that has never run: refused by its state, not by the file
BY_STATE = (
    ("standing", "say", "scribe", "--text", "hello"),
    ("standing", "pause", "scribe"),
    ("standing", "resume", "scribe"),
    ("standing", "interrupt", "scribe"),
    ("standing", "screen", "scribe"),
    ("standing", "logs", "scribe"),
    ("standing", "attach", "scribe"),
    ("standing", "cancel", "m-1"),
    ("standing", "confirm", "m-1"),
    ("loop", "pause", "loop_nosuch"),
    ("loop", "stop", "loop_nosuch"),
)
REFUSED = (
    ("standing", "start", "scribe"),
    ("standing", "start"),
    ("standing", "restart", "scribe"),
    ("standing", "create", "extra", "--no-start"),
    ("standing", "delete", "scribe"),
    ("standing", "announce", "scribe"),
    ("loop", "create", "scribe", "--instruction", "x"),
)


@pytest.fixture
def broken(terminal: Terminal) -> Terminal:
    """Give a terminal whose file has one bad interval, beside a session that is recorded and one that is not."""
    written = terminal.config.read_text().replace("{name: scribe}", "{name: scribe, loops: [LOOP]}, {name: fresh}")
    terminal.config.write_text(written.replace("LOOP", "{name: x, instruction: y, interval: 5}"))
    record = SessionRecord(
        "scribe", "s-scribe", Definition("scribe"), datetime(2026, 11, 29, tzinfo=UTC), declared=True
    )
    RecordFiles(terminal.paths).write(record)
    return terminal


@pytest.mark.parametrize("words", LOOK, ids=" ".join)
def test_what_looks_answers_and_tells_the_problem_once(broken: Terminal, words: tuple[str, ...]) -> None:
    """The answer is the usual one; standard error says what is wrong with the file, once."""
    code = broken.run(*words)

    assert code == 0
    assert broken.err.count("the configuration is not valid") == 1
    assert "interval" in broken.err


@pytest.mark.parametrize("words", BY_STATE, ids=" ".join)
def test_what_names_a_session_is_judged_by_its_state(broken: Terminal, words: tuple[str, ...]) -> None:
    """Whatever ends it, it is not the file."""
    code = broken.run("--json", *words)

    assert code == 1
    assert broken.json["error"]["code"] in {"not_running", "unknown_message", "unknown_loop"}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_makes_or_starts_is_refused(broken: Terminal, words: tuple[str, ...]) -> None:
    """Nobody knows what is to run; so nothing is begun, and the error names the key."""
    code = broken.run("--json", *words)

    assert code == 2
    assert broken.json["error"]["code"] == "config_invalid"


def test_list_shows_what_is_recorded_with_its_own_harness(broken: Terminal) -> None:
    """The row of the record, and one that says that there may be more; exit code 2, since the list may lack some."""
    code = broken.run("standing", "list", "--json")

    wrong, row = broken.json
    assert code == 2
    assert (wrong["outcome"], "interval" in wrong["detail"]) == ("misconfigured", True)
    assert (row["name"], row["harness"], row["declared"]) == ("scribe", "absent", True)


def test_people_get_the_table_and_the_problem_beside_it(broken: Terminal) -> None:
    """No row of the table stands for the file."""
    code = broken.run("standing", "list")

    assert code == 2
    assert "scribe" in broken.out
    assert "misconfigured" not in broken.out
    assert broken.err.count("the configuration is not valid") == 1


def test_status_still_tells_of_service_and_sessions(broken: Terminal) -> None:
    """It is not well, and says how the service and each recorded session are."""
    code = broken.run("status", "--json")

    assert code == 1
    assert broken.json["ok"] is False
    assert [row["name"] for row in broken.json["services"]] == ["service"]
    assert [row["name"] for row in broken.json["standingSessions"]] == ["standingSessions", "scribe"]


def test_status_tells_people_the_problem_once(broken: Terminal) -> None:
    """The service's line and the table are on standard output, the problem on standard error."""
    broken.run("status")

    assert "service: not running" in broken.out
    assert "misconfigured" not in broken.out
    assert broken.err.count("the configuration is not valid") == 1


def test_a_name_that_is_not_recorded_is_not_called_unknown(broken: Terminal) -> None:
    """The file may declare it: that it does not is more than anybody knows."""
    code = broken.run("--json", "standing", "get", "fresh")

    error = broken.json["error"]
    assert (code, error["code"]) == (1, "unknown_session")
    assert "neither declared" not in error["message"]
    assert "the-loop" in error["remedy"]
    assert "config check" in error["remedy"]


def test_a_verb_says_of_the_rest_of_the_file_what_it_is_used_for(broken: Terminal) -> None:
    """What goes on in spite of the file says so."""
    broken.run("standing", "stop", "scribe")

    assert "by what could be read of it" in broken.err
