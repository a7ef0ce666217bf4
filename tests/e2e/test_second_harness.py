"""A harness that comes as a package of its own runs sessions: core has no line about it."""

import os
from pathlib import Path

from tests.support.parrot import PARROT
from tests.support.product import NAME, product
from tests.support.tmux import wait_until

ROOT = Path(__file__).parents[2]


def test_a_session_runs_a_harness_of_a_package_of_its_own() -> None:
    """It is chosen by its name, without being declared, and gets what is said to the session."""
    with product() as loop:
        installed = loop.folder / "installed"
        package = installed / "parrot-1.dist-info"
        package.mkdir(parents=True)
        (package / "entry_points.txt").write_text(f"[the_loop.harnesses]\n{PARROT}")
        loop.configure(standingSessions={"enabled": True, "sessions": [{"name": NAME, "harness": "parrot"}]})
        env = {"PYTHONPATH": os.pathsep.join((str(installed), str(ROOT)))}

        started = loop.cli("standing", "start", NAME, "--json", env=env)
        said = loop.cli("standing", "say", NAME, "--text", "hello from a package", env=env)

        assert (started.row["harness"], started.row["running"]) == ("parrot", True)
        assert "submitted" in said.out
        wait_until(lambda: loop.screen().count("hello from a package") == 2, "it repeats what was typed")
