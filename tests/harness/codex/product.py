"""The whole product with real Codex in its panes, and its kit for the cases that every harness runs."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.model import ModelServer
from tests.harness.product import FAILURES, Ability, Kit
from tests.harness.program import PROGRAMS

CODEX = PROGRAMS["codex"]
#: Without a permission its sandbox lets it write into the session's folder; so what is to ask says that it needs more.
MADE = {"cmd": "touch made-by-test", "sandbox_permissions": "require_escalated", "justification": "to make it"}
ASKS = f"[[call exec_command {json.dumps(MADE)}]]"
#: Codex waits no longer for a command, and lets it go on.
_WORK = '[[call exec_command {{"cmd": "sleep 0 {seconds}", "yield_time_ms": 30000}}]]'
_JOB = '[[call exec_command {{"cmd": "sleep {seconds}", "yield_time_ms": 300}}]]'


def settle(home: Path, model: ModelServer) -> None:
    """Write what somebody has in their home who uses a model of their own, and has seen what Codex shows once."""
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f'''model = "fake-model"
model_provider = "ours"

[model_providers.ours]
name = "ours"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "OURS_KEY"

[analytics]
enabled = false

[tui]
screen_reader_detection_done = true
show_tooltips = false
'''
    )


def variables(home: Path, model: ModelServer) -> Mapping[str, str]:
    """Return what Codex finds in its environment."""
    return {"OURS_KEY": "sk-test-key-of-nobody", "SHELL": "/bin/bash"}


def _hooks_off(home: Path) -> None:
    with (home / ".codex" / "config.toml").open("a") as stream:
        stream.write("\n[features]\nhooks = false\n")


KIT = Kit(
    CODEX,
    variables,
    settle,
    work=_WORK,
    asks=ASKS,
    job=_JOB,
    leave="/quit",
    anew="/new",
    hooks_off=_hooks_off,
    failures={**FAILURES, "[[limit 3600]]": "used up its limit"},
    lacks={
        Ability.TASKS: "no hook tells of a job that goes on after a turn, and its record is not read for it",
        **({Ability.FOLDER: "it refuses to begin a turn then"} if CODEX.before("0.171.0") else {}),
    },
)
