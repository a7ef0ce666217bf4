"""What needs more than one key to be judged."""

from __future__ import annotations

import pytest

from core.harness.catalogue import BUILT_IN
from core.harness.claude.arguments import OWNED
from tests.unit.config.conftest import ConfigFolder


def test_a_name_twice_refuses_the_block_and_names_both_positions(folder: ConfigFolder) -> None:
    """Duplicate names: nothing of the block is used, and each place says where the other is."""
    found = folder.problems(
        """\
        standingSessions:
          sessions:
            - name: scribe
            - name: other
            - name: scribe
        """
    )

    assert list(found) == ["standingSessions.sessions[0].name", "standingSessions.sessions[2].name"]
    for problem in found.values():
        assert "standingSessions.sessions[0] (line 3)" in problem.found
        assert "standingSessions.sessions[2] (line 5)" in problem.found


def test_prompt_and_prompt_file_together_are_refused_by_the_sessions_name(folder: ConfigFolder) -> None:
    """A session has one brief; with two of them it is refused, and its name is said."""
    found = folder.problems("standingSessions: {sessions: [{name: scribe, prompt: a, promptFile: b}]}")

    assert '"scribe"' in found["standingSessions.sessions[0].promptFile"].found


@pytest.mark.parametrize("flag", [*OWNED, "-r", "-c", "-p", "-pr", "--resume=x"])
def test_a_flag_of_our_own_is_refused_wherever_it_stands(folder: ConfigFolder, flag: str) -> None:
    """Flags that the-loop gives itself are refused in routing and in a session, with their reason."""
    found = folder.problems(
        f"""\
        routing: {{harnessArgs: {{claude: [--model, "{flag}"]}}}}
        standingSessions:
          sessions:
            - {{name: a, harnessArgs: ["{flag}"]}}
            - {{name: b, harness: claude, harnessArgs: ["{flag}"]}}
        """
    )

    assert list(found) == [
        "routing.harnessArgs.claude[1]",
        "standingSessions.sessions[0].harnessArgs[0]",
        "standingSessions.sessions[1].harnessArgs[0]",
    ]
    assert all(f"{flag!r} cannot be given" in problem.found for problem in found.values())


def test_the_bundled_agent_takes_no_arguments(folder: ConfigFolder) -> None:
    """Arguments that could only fail at start are refused before."""
    found = folder.problems(
        "routing: {defaultHarness: bundled, harnessArgs: {bundled: [x]}}\n"
        "standingSessions: {sessions: [{name: a, harnessArgs: [y]}]}\n"
    )

    assert list(found) == ["routing.harnessArgs.bundled", "standingSessions.sessions[0].harnessArgs"]


def test_flags_that_we_merge_and_flags_of_a_declared_program_are_allowed(folder: ConfigFolder) -> None:
    """`--settings` is merged with ours, and a program of the operator's own may use any flag."""
    found = folder.load(
        """
        harnesses: {mine: {start: [prog]}}
        routing: {harnessArgs: {claude: [--settings, x.json], mine: [-p, --resume]}}
        standingSessions: {sessions: [{name: a, harness: mine, harnessArgs: [-c]}]}
        """
    )

    assert found.routing.harness_args["mine"] == ("-p", "--resume")


@pytest.mark.parametrize("harness", ["claude", "cursor", "bundled", "mine"])
def test_a_known_harness_is_taken_everywhere(folder: ConfigFolder, harness: str) -> None:
    """The adapters' names and the declared keys are harnesses; cursor is refused by its adapter at start, not here."""
    found = folder.load(
        f"""
        harnesses: {{mine: {{start: [prog]}}}}
        routing: {{defaultHarness: {harness}, harnessArgs: {{{harness}: []}}}}
        standingSessions: {{sessions: [{{name: a, harness: {harness}}}]}}
        """
    )

    assert found.routing.default_harness == harness


def test_a_program_without_an_adapter_is_refused_with_the_remedy(folder: ConfigFolder) -> None:
    """Declare it."""
    found = folder.problems("routing: {defaultHarness: aider}")["routing.defaultHarness"]

    assert "declare it under harnesses (harnesses.aider.start)" in found.remedy


def test_a_program_without_an_adapter_may_be_declared(folder: ConfigFolder) -> None:
    """Once it is declared under harnesses, its name is as good as any."""
    found = folder.load("routing: {defaultHarness: aider}\nharnesses: {aider: {start: [aider]}}")

    assert found.harnesses["aider"].start == ("aider",)


def test_an_unknown_harness_is_refused_in_each_place(folder: ConfigFolder) -> None:
    """defaultHarness, the keys of harnessArgs and a session's harness name known programs only."""
    found = folder.problems(
        """
        routing: {defaultHarness: nope, harnessArgs: {nope: [x]}}
        standingSessions: {sessions: [{name: a, harness: nope}]}
        """
    )

    assert set(found) == {
        "routing.defaultHarness",
        "routing.harnessArgs.nope",
        "standingSessions.sessions[0].harness",
    }
    assert found["routing.defaultHarness"].allowed == ", ".join(BUILT_IN)


@pytest.mark.parametrize("key", ["claude", "bundled", "cursor", "Upper", "a b"])
def test_a_declared_program_needs_a_name_of_its_own(folder: ConfigFolder, key: str) -> None:
    """A declaration neither replaces an adapter nor has a name that cannot be typed."""
    found = folder.problems(f'harnesses: {{"{key}": {{start: [x]}}}}')

    assert [problem.remedy for problem in found.values()] == ["choose another name"]


def test_a_resume_command_says_where_the_id_goes(folder: ConfigFolder) -> None:
    """Without {id} a resume would take up whatever conversation came last."""
    found = folder.problems("harnesses: {mine: {start: [x], resume: [x, --continue]}}")

    assert "{id}" in found["harnesses.mine.resume"].allowed
