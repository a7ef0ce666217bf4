"""What the cases know of Gemini CLI: an isolated home, a made-up key, a model of our own."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.model import ModelServer
from tests.harness.product import Ability, Kit
from tests.harness.program import PROGRAMS

GEMINI = PROGRAMS["gemini"]
POLICY = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "sleep"
decision = "allow"
priority = 100
"""


def variables(home: Path, model: ModelServer) -> Mapping[str, str]:
    """Return the variables by which Gemini CLI reaches the model, and nothing else."""
    return {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "test-key-of-nobody", "COLORTERM": "truecolor"}


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
    variables=variables,
    settle=settle,
    args=("--model", "gemini-2.5-flash"),  # its own choice would ask another model first, for each prompt
    read='[[call read_file {{"file_path": "{path}", "end_line": 3}}]]',
    leave="/quit",
    hooks_off=switch_hooks_off,
    choices={"Allow": "Allow once", "Deny": "No, suggest changes (esc)"},
    lacks={
        Ability.ANSWER: "no hook can answer its dialog, which is shown in the thread with its own choices",
        Ability.TASKS: "Gemini CLI tells nobody when a background command ends",
    },
)
