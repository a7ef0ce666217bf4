"""The worked examples of docs/harnesses.md run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.workspace.thread import WorkspaceThread
from tests.support.product import NAME, Product, product
from tests.support.tmux import PATIENCE, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "harnesses.md"


def examples(language: str) -> list[str]:
    """Return the page's blocks of code in that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def declared(name: str) -> dict[str, Any]:
    """Return the example that declares the harness."""
    [found] = [content for text in examples("yaml") if name in (content := yaml.safe_load(text))["harnesses"]]
    return dict(found)


def use(loop: Product, harness: str) -> None:
    """Declare the one session to be of that harness, and start it."""
    sessions = [{"name": NAME, "harness": harness}]
    loop.configure(**declared(harness), standingSessions={"enabled": True, "sessions": sessions})
    started = loop.cli("standing", "start", NAME, "--json")
    assert (started.row["harness"], started.row["running"]) == (harness, True), started.out


def say(loop: Product, text: str) -> str:
    """Say it, and return the state of the message."""
    return str(loop.cli("standing", "say", NAME, "--text", text, "--json").json["state"])


def test_a_shell_runs_what_it_is_told() -> None:
    """Without the frame; nothing proves that it took it, and a stop ends what it has started."""
    with product() as loop:
        use(loop, "shell")

        states = [say(loop, "count=$((6 * 7))"), say(loop, 'echo "it is $count"')]
        wait_until(lambda: "\nit is 42" in loop.screen(), "it has run both")
        screen = loop.screen()
        stopped = loop.cli("standing", "stop", NAME, "--json")

        assert states == ["submitted", "submitted"]
        assert "command not found" not in screen
        assert stopped.row["outcome"] == "stopped"


def test_a_repl_that_reads_lines_resumes_with_its_variables() -> None:
    """A restart goes on with the same conversation, by its id."""
    with product() as loop:
        use(loop, "python")
        say(loop, "count = 6 * 7")
        before = loop.record()["harnessSessionId"]

        again = loop.cli("standing", "restart", NAME, "--json")
        state = say(loop, "print('it is', count)")
        wait_until(lambda: "it is 42" in loop.screen(), "it remembers")

        assert again.row["outcome"] == "resumed"
        assert state == "submitted"
        assert loop.record()["harnessSessionId"] == before
        assert "Error" not in loop.screen()


def test_a_package_of_its_own_brings_a_harness_with_evidence(tmp_path: Path) -> None:
    """Built and installed as any package; its sessions are chosen by its name, and their messages are confirmed."""
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    [project], [module] = examples("toml"), examples("python")
    (source / "pyproject.toml").write_text(project)
    (source / "the_loop_diary.py").write_text(module)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(installed), str(source)], check=True, timeout=120)
    session = {"name": NAME, "harness": "diary", "slack": {"enabled": True}}
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, product(workspace) as loop:
        loop.configure(standingSessions={"enabled": True, "sessions": [session]})
        loop.serve(env={"PYTHONPATH": str(installed)}).wait_swept()
        thread = loop.root()

        ts = loop.workspace.say("alice", "agents", "the herons are back", thread)
        answer = loop.wait_reply(thread, "noted: [alice via slack #")
        loop.workspace.wait_for_reaction("agents", ts, "white_check_mark", PATIENCE)

        assert answer["text"].rstrip().endswith("the herons are back")
        assert [event["detail"] for event in loop.events("standing.confirmed")][-1] == "confirmed"


def test_without_its_package_the_session_alone_fails() -> None:
    """The row names the harnesses that there are."""
    with product() as loop:
        loop.configure(standingSessions={"enabled": True, "sessions": [{"name": NAME, "harness": "diary"}]})

        started = loop.cli("standing", "start", NAME, "--json")

        assert started.code != 0
        assert "diary" in started.out + started.err


@pytest.mark.parametrize("language", ["yaml", "toml", "python"])
def test_the_page_has_no_example_that_is_not_run(language: str) -> None:
    """An example is added with its test."""
    assert len(examples(language)) == {"yaml": 2, "toml": 1, "python": 1}[language]
