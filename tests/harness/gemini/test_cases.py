"""The thirty cases with real Gemini CLI."""

import json
from pathlib import Path

import pytest

from tests.fakes.model import ModelServer
from tests.harness.cases import Cases, Lacks, begin
from tests.harness.gemini.product import GEMINI, MODEL, login
from tests.harness.product import TURN, Ability, HarnessProduct, Kit
from tests.support.asking import press, wait_buttons, wait_text

POLICY = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "sleep"
decision = "allow"
priority = 100
"""


def settle(home: Path, model: ModelServer) -> None:
    """Let the person have a policy, sleeping needs no permission, and settings: a model that echoes is no loop."""
    policies = home / ".gemini" / "policies"
    policies.mkdir(parents=True)
    (policies / "sleep.toml").write_text(POLICY)
    change(home, "model", disableLoopDetection=True)


def change(home: Path, block: str, **values: bool) -> None:
    """Change the person's own settings."""
    path = home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**settings, block: values}))


def switch_hooks_off(home: Path) -> None:
    """Switch hooks off in the person's own settings."""
    change(home, "hooksConfig", enabled=False)


KIT = Kit(
    program=GEMINI,
    variables=lambda home, model: login(model),
    settle=settle,
    args=MODEL,
    read='[[call read_file {{"file_path": "{path}", "end_line": 3}}]]',
    leave="/quit",
    hooks_off=switch_hooks_off,
    lacks={Ability.TASKS: "Gemini CLI tells nobody when a background command ends"},
)


class TestGemini(Cases):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """Gemini CLI."""
        return KIT

    @pytest.mark.capability("permission hook")
    @pytest.mark.parametrize("label", ["Allow once", "No, suggest changes (esc)"])
    def test_a_permission_is_answered_in_the_thread(self, talking: HarnessProduct, lacks: Lacks, label: str) -> None:
        """Its dialog is shown with its own choices: no hook of it can answer."""
        thread, made = begin(talking), talking.folder / "work" / "made-by-test"
        talking.workspace.say("alice", "agents", f"work {talking.kit.asks}", thread)

        asked = wait_buttons(talking, thread, "shows a dialog in its terminal", TURN)
        before = made.exists()
        press(talking, "alice", asked, label)
        wait_text(talking, thread, asked["ts"], "chosen by alice", TURN)
        talking.wait_activity("idle")

        assert talking.row()["capabilities"]["permission hook"] == "missing"
        assert before is False
        assert made.exists() is (label == "Allow once")
