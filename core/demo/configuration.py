"""The demo's configuration file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from core.store.files import write_private

DEMO_SESSION = "guide"
DEMO_PERSON = "you"
DEMO_CHANNEL = "agents"
_HEADER = "# Written by `the-loop demo` at each start. Everything it names is in this folder or on loopback.\n"


def write_configuration(folder: Path, facts: Mapping[str, Any]) -> Path:
    """Write the demo's configuration for a workspace with these facts, and return its path."""
    work = folder / "work"
    work.mkdir(mode=0o700, exist_ok=True)
    document = {
        "state": {"root": str(folder / "state")},
        "routing": {
            "defaultHarness": "bundled",
            "spawnWorkdir": str(work),
            "tmux": {"socketName": "the-loop-demo"},
        },
        "channels": {
            "slack": {
                "enabled": True,
                "apiUrl": facts["api_url"],
                "channel": facts["channels"][DEMO_CHANNEL],
                "authorizedUsers": [facts["users"][DEMO_PERSON]],
            }
        },
        "standingSessions": {
            "enabled": True,
            "sessions": [
                {
                    "name": DEMO_SESSION,
                    "description": "the bundled agent",
                    "prompt": "Greet your operator and say what you can do.",
                    "slack": {"enabled": True},
                }
            ],
        },
    }
    config = folder / "cli-config.yaml"
    write_private(config, (_HEADER + yaml.safe_dump(document, sort_keys=False)).encode())
    return config
