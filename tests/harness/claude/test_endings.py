"""The end of a turn with real Claude Code: an operator's own hook can let it go on after ours has told of its end."""

import json

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.product import NAME
from tests.support.tmux import wait_until

TASK = "the first task [[sleep 12]]"
STOP_HOOK = """#!/bin/sh
case $(cat) in *'"stop_hook_active":true'*) exit 0 ;; esac
[ ! -e "$HOME/quiet" ] && echo '{"decision": "block", "reason": "go on please [[sleep 12]]"}'
exit 0
"""


def with_stop_hook(product: ClaudeProduct) -> None:
    """Give the operator a Stop hook that lets each turn go on once, unless the file `quiet` is there."""
    home = product.folder / "home"
    (home / ".claude").mkdir(exist_ok=True)
    hook = home / "go-on"
    hook.write_text(STOP_HOOK)
    hook.chmod(0o755)
    stop = [{"hooks": [{"type": "command", "command": str(hook)}]}]
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"Stop": stop}}))
    (home / "quiet").touch()


@pytest.mark.capability("turn edges")
def test_a_turn_that_another_hook_lets_go_on_is_not_over(talking: ClaudeProduct) -> None:
    """Its row stays busy and its reply is not ticked off before it is really over, and then both follow."""
    with_stop_hook(talking)
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")
    (talking.folder / "home" / "quiet").unlink()
    ts = talking.workspace.say("alice", "agents", TASK, thread)
    talking.wait_state(TASK, "confirmed")
    summary = "stop_hook_summary"
    files = talking.folder / "home" / ".claude" / "projects"
    before = sum(path.read_text().count(summary) for path in files.rglob("*.jsonl"))
    wait_until(
        lambda: sum(path.read_text().count(summary) for path in files.rglob("*.jsonl")) > before, "it was let go on", 60
    )

    seen: set[tuple[str, tuple[str, ...]]] = set()

    def over() -> bool:
        marks = tuple(talking.workspace.reactions("agents", ts))
        activity = talking.activity()
        if talking.status() == "busy":
            seen.add((activity, marks))
        return talking.status() == "idle"

    wait_until(over, "it is over", 60)
    talking.wait_activity("idle", seconds=5)
    wait_until(lambda: list(talking.workspace.reactions("agents", ts)) == ["white_check_mark"], "it is ticked off", 10)

    assert seen == {("busy", ("eyes",))}
    assert talking.cli("standing", "get", NAME, "--json").json["capabilities"]["turn edges"] == "proven"
