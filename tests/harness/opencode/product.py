"""What the cases know of OpenCode: an isolated home, a made-up key, a model of our own."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.model import ModelServer
from tests.harness.product import Ability, Kit
from tests.harness.program import PROGRAMS

OPENCODE = PROGRAMS["opencode"]
_FREE = ("sleep *", "echo *", "head *")  #: commands that ask for nothing


def variables(home: Path, model: ModelServer) -> Mapping[str, str]:
    """Return the variables of an OpenCode that reaches nothing but the model of its settings."""
    return {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "npm_config_registry": "http://127.0.0.1:9/",  # nobody listens: it would install packages in the home
    }


def settle(home: Path, model: ModelServer) -> None:
    """Write a person's own configuration: one model, and a shell that asks about nearly everything."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "test-key"},
        "models": {
            "fake-model": {
                "name": "Fake",
                "limit": {"context": 200_000, "output": 8_000},
                "cost": {"input": 1, "output": 2},
            }
        },
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",  # it would add that by itself
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "share": "disabled",
        "provider": {"fake": provider},
        "permission": {"bash": {"*": "ask", **dict.fromkeys(_FREE, "allow")}},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))


def _hooks_off(home: Path) -> None:
    """Switch the plugin off by its name, as a person can for every OpenCode of theirs."""
    (home / ".config" / "opencode" / "tui.json").write_text(json.dumps({"plugin_enabled": {"the-loop": False}}))


KIT = Kit(
    OPENCODE,
    variables,
    settle,
    job="[[tool bash sleep {seconds} >/dev/null 2>&1 &]]",
    cancel=("Escape", "Escape"),
    anew="/new",
    hooks_off=_hooks_off,
    failures={"[[error 401 for 1 nobody]]": "not logged in"},  # it sends what failed again, with the next message
    lacks={Ability.TASKS: "it keeps no record of what a tool leaves in the background"},
)


def opencode_environ(home: Path, model: ModelServer) -> dict[str, str]:
    """Return the whole environment of an OpenCode in that home."""
    path = f"{OPENCODE.programs}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **variables(home, model)}
