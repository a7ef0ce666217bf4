"""Real harnesses on a model of our own: isolated home, made-up key, nothing but loopback. One folder a harness."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.model import ModelServer, serving
from tests.harness.program import HERE, PROGRAMS, Program
from tests.harness.recording import Recording

pytest.register_assert_rewrite(
    *(f"tests.harness.{name}" for name in ("cases", "counting", "endings")), "tests.integration.harness.contract"
)


def pytest_configure(config: pytest.Config) -> None:
    """Record how each case ends."""
    config.pluginmanager.register(Recording.of_environment(), "harness-recording")


def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run where a program is not there, or another one is."""
    if session.config.option.collectonly or hasattr(session.config, "workerinput"):
        return  # a worker's leader has looked
    for program in _asked(session.config):
        trouble = program.trouble()
        if trouble:
            pytest.exit(trouble, 2)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which programs run."""
    return [f"{program.harness}: {program.version}, in {program.folder}" for program in _asked(config)]


def _asked(config: pytest.Config) -> list[Program]:
    """Return the programs whose cases are asked for."""
    paths = [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]
    return [
        program
        for name, program in PROGRAMS.items()
        if any((HERE / name).is_relative_to(path) or path.is_relative_to(HERE / name) for path in paths)
    ]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The model that the harness talks to."""
    with serving() as server:
        yield server
