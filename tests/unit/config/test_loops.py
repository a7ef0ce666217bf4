"""What is wrong with the loops that a file declares."""

from datetime import timedelta

import pytest

from core.config.settings import DeclaredLoop, LoopSettings
from tests.unit.config.conftest import ConfigFolder

AT = "standingSessions.sessions[0].loops"


def test_declared_loops_are_read(folder: ConfigFolder) -> None:
    """By their session; what is left out has its default."""
    found = folder.load(
        """
        loops: {minInterval: 1m, maxInterval: 2d, maxAgeDays: 0, maxOpenPerSession: 2}
        standingSessions:
          sessions:
            - name: scribe
              loops:
                - {name: builds, instruction: look at the builds, interval: 1.5 hours, keepAlive: true, maxRuns: 3}
                - {name: morning, instruction: good morning, cron: "0 9 * * MON-FRI", timeZone: Europe/Berlin}
            - name: other
        """
    )

    assert found.loops == LoopSettings(timedelta(minutes=1), timedelta(days=2), 0, 2)
    assert found.loops.max_age is None
    assert found.standing.loops == {
        "scribe": (
            DeclaredLoop("builds", "look at the builds", interval="1.5 hours", keep_alive=True, max_runs=3),
            DeclaredLoop("morning", "good morning", cron="0 9 * * MON-FRI", time_zone="Europe/Berlin"),
        )
    }


def test_all_that_is_wrong_is_told_at_once(folder: ConfigFolder) -> None:
    """Each thing at its key."""
    found = folder.problems(
        """\
        standingSessions:
          sessions:
            - name: scribe
              loops:
                - {name: a, instruction: "", interval: 5s}
                - {name: a, instruction: x, cron: "61 * * * *", timeZone: Mars}
                - {name: b, instruction: x, keepAlive: true}
                - {name: c, instruction: x, interval: 5m, cron: "* * * * *", maxRuns: 0}
                - {name: d, interval: soon, colour: red}
                - {name: E, instruction: x, timeZone: UTC}
        """
    )

    assert set(found) == {
        AT,
        f"{AT}[0].instruction",
        f"{AT}[0].interval",
        f"{AT}[1].name",
        f"{AT}[1].cron",
        f"{AT}[1].timeZone",
        f"{AT}[2]",
        f"{AT}[3]",
        f"{AT}[3].maxRuns",
        f"{AT}[4]",
        f"{AT}[4].interval",
        f"{AT}[4].colour",
        f"{AT}[5]",
        f"{AT}[5].name",
    }
    assert found[AT].found == "6 loops"
    assert "a keep-alive loop needs an interval or a cron expression" in found[f"{AT}[2]"].found
    assert found[f"{AT}[0].interval"].allowed == "30s to 7d (loops.minInterval, loops.maxInterval)"
    assert "on line 5" in found[f"{AT}[1].name"].found


def test_the_bounds_of_the_file_count(folder: ConfigFolder) -> None:
    """Its own minInterval, and not the default."""
    text = (
        "standingSessions: {{sessions: [{{name: a, loops: [{{name: b, instruction: x, interval: 9s}}]}}]}}\nloops: {}"
    )

    assert list(folder.problems(text.format("{}"))) == [f"{AT}[0].interval"]
    assert folder.load(text.format("{minInterval: 9s}")).standing.loops["a"][0].interval == "9s"


def test_bounds_the_wrong_way_round_are_refused(folder: ConfigFolder) -> None:
    """No interval would be allowed."""
    found = folder.problems("loops: {minInterval: 2h, maxInterval: 1h}")

    assert found["loops"].found == "loops between 2h and 1h apart"


@pytest.mark.parametrize(
    "loops",
    ["1", "{a: b}", "[1, null, []]", "[{name: 1, instruction: [], interval: 5, cron: {}, timeZone: 1}]"],
)
def test_values_of_a_wrong_type_are_the_schemas_to_report(folder: ConfigFolder, loops: str) -> None:
    """They are told, and nothing fails on them."""
    assert folder.problems(f"standingSessions: {{sessions: [{{name: a, loops: {loops}}}]}}\nloops: {{minInterval: 1}}")


@pytest.mark.parametrize("keep_alive", ["", ", keepAlive: true"])
def test_a_bare_number_needs_a_unit_and_is_told_once(folder: ConfigFolder, keep_alive: str) -> None:
    """What is there with the wrong type is not also missed."""
    found = folder.problems(
        f"standingSessions: {{sessions: [{{name: a, loops: [{{name: b, instruction: x, interval: 5{keep_alive}}}]}}]}}"
    )

    assert set(found) == {f"{AT}[0].interval"}
    assert found[f"{AT}[0].interval"].remedy == "give it a unit, such as 5m"


def test_every_span_that_is_a_bare_number_needs_a_unit(folder: ConfigFolder) -> None:
    """The bounds of loops and the time of idleness, too."""
    found = folder.problems(
        "loops: {minInterval: 30, maxInterval: 7.5}\nstandingSessions: {sessions: [{name: a, idle: {stopAfter: 30}}]}"
    )

    assert len(found) == 3
    assert {problem.remedy for problem in found.values()} == {"give it a unit, such as 5m"}


def test_each_problem_reads_as_one_sentence(folder: ConfigFolder) -> None:
    """What was found stands behind `found`, why it will not do behind that."""
    found = folder.problems(
        """\
        standingSessions:
          sessions:
            - name: scribe
              loops:
                - {name: a, instruction: x, cron: "61 * * * *"}
                - {name: b, instruction: x, keepAlive: true}
                - {name: c, instruction: x, interval: 5s}
        """
    )

    assert 'found "61 * * * *" (text): the cron expression' in str(found[f"{AT}[0].cron"])
    assert "found keys that do not go together: a keep-alive loop needs" in str(found[f"{AT}[1]"])
    assert str(found[f"{AT}[2].interval"]).endswith(
        "found \"5s\" (text): the interval '5s' is out of bounds; "
        "allowed: 30s to 7d (loops.minInterval, loops.maxInterval); change the value"
    )
