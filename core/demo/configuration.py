"""The demo's configuration file."""

import os
from binascii import crc32
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from core.config.demonstration import FILE, HEADER, state_root
from core.store.files import write_private

DEMO_SESSION = "guide"
DEMO_PERSON = "you"
DEMO_CHANNEL = "agents"
DEMO_SOCKET = "the-loop-demo"


def last_socket(folder: Path) -> str:
    """Return the name of the tmux server that the folder's demo used last, or the usual one."""
    try:
        last = yaml.safe_load((folder / FILE).read_text())["routing"]["tmux"]["socketName"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return DEMO_SOCKET  # there was no demo here, or its file is no longer ours
    return last if isinstance(last, str) and last.startswith(DEMO_SOCKET) else DEMO_SOCKET


def own_socket(folder: Path) -> str:
    """Return a name that the demo of no other folder uses."""
    return f"{DEMO_SOCKET}-{crc32(os.fsencode(folder)):08x}"


def write_configuration(folder: Path, facts: Mapping[str, Any], socket: str) -> Path:
    """Write the demo's configuration for a workspace with these facts, and return its path."""
    work = folder / "work"
    work.mkdir(mode=0o700, exist_ok=True)
    document = {
        "state": {"root": str(state_root(folder))},
        "routing": {
            "defaultHarness": "bundled",
            "spawnWorkdir": str(work),
            "tmux": {"socketName": socket},
        },
        "service": {"port": 0},
        "channels": {
            "slack": {
                "enabled": True,
                "apiUrl": facts["api_url"],
                "channel": facts["channels"][DEMO_CHANNEL],
                "authorizedUsers": [facts["users"][DEMO_PERSON]],
                "operators": [facts["users"][DEMO_PERSON]],
            }
        },
        "standingSessions": {
            "enabled": True,
            "sessions": [
                {
                    "name": DEMO_SESSION,
                    "description": "the bundled agent",
                    "prompt": "Say that you are ready, and how to learn what you can do.",
                    "slack": {"enabled": True},
                }
            ],
        },
    }
    config = folder / FILE
    write_private(config, (HEADER + yaml.safe_dump(document, sort_keys=False)).encode())
    return config
