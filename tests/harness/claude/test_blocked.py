"""Prompts that a hook of the operator's own keeps from real Claude Code."""

import json

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.asking import wait_buttons

BLOCKS = """#!/bin/sh
case $(cat) in *forbidden*) echo "policy: no" >&2; exit 2 ;; esac
"""
TEXT = "this is forbidden"


@pytest.mark.capability("transcript form")
def test_a_prompt_that_another_hook_blocks_is_told_with_its_words(talking: ClaudeProduct) -> None:
    """The thread says what kept it out, the session is idle again at once, and the next message goes in alone."""
    home = talking.folder / "home"
    (home / ".claude").mkdir(exist_ok=True)
    (home / "block").write_text(BLOCKS)
    (home / "block").chmod(0o755)
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": str(home / "block")}]}]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")

    talking.workspace.say("alice", "agents", TEXT, thread)
    talking.wait_state(TEXT, "unknown")
    talking.wait_activity("idle", seconds=5)
    note = wait_buttons(talking, thread, "did not go in", 20)
    talking.workspace.say("alice", "agents", "this is well", thread)
    talking.wait_state("this is well", "confirmed")

    assert "did not go in: a hook of the program blocked it: policy: no" in note["text"]
    assert not talking.model.requests(TEXT)
