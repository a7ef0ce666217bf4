"""`the-loop slack setup`: from a fresh folder to a first reply, by a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from bot import manifest
from embedded.workspace.thread import WorkspaceThread
from tests.support.dialogue import Dialogue, dialogue
from tests.support.product import APP_VARIABLE, BOT_VARIABLE, NAME, PROGRAM, Product, is_root, product


@pytest.fixture
def fresh(workspace: WorkspaceThread) -> Iterator[Product]:
    """Give a product that knows nothing of the workspace but its address; its bot is in no channel."""
    workspace.kick("the-loop", "agents")
    with product() as running:
        document = running.document()
        document["standingSessions"] = {"enabled": False}
        text = yaml.safe_dump(document)
        running.configure(f"# mine\n{text}channels:\n  slack:\n    apiUrl: {workspace.api_url}  # loopback\n")
        yield running


@contextmanager
def talk(product: Product, **environ: str) -> Iterator[Dialogue]:
    """Run the setup in a terminal."""
    words = (str(PROGRAM), "--config", str(product.config), "slack", "setup")
    with dialogue(words, product.environ(**environ), product.folder / "work") as terminal:
        yield terminal


def test_from_nothing_to_a_first_reply_and_again(workspace: WorkspaceThread, fresh: Product) -> None:
    """Every mistake on the way is named and can be mended; the second run asks nothing; no token is seen anywhere."""
    workspace.set_scopes([scope for scope in manifest.scopes() if scope != "reactions:write"])
    with talk(fresh) as terminal:
        terminal.wait("Bot token")
        terminal.answer("xoxb-of-nobody")
        assert "invalid_auth" in terminal.wait("Bot token")
        terminal.answer(workspace.bot_token)
        terminal.wait("App-level token (xapp")
        terminal.answer(workspace.app_token)
        terminal.wait("missing: reactions:write")
        workspace.set_scopes(manifest.scopes())
        terminal.wait("New bot token")
        terminal.answer()
        terminal.wait("Channel: ")
        terminal.answer("#agents")
        terminal.wait("the bot is not in #agents")
        workspace.join("the-loop", "agents")
        terminal.wait("Enter once that is done")
        terminal.answer()
        terminal.wait("Your member id")
        terminal.answer()
        word = terminal.wait("loop-") + terminal.wait("\n").strip()
        workspace.say("alice", "agents", word[word.index("loop-") :])
        terminal.wait(f"({workspace.user_id('alice')})")
        terminal.wait("Slack is connected")
        terminal.wait("Name of your first session")
        terminal.answer("No Name")
        terminal.wait("Its program (")
        terminal.answer("bundled")
        terminal.wait("The folder")
        terminal.answer()
        terminal.wait("not yet: ")
        terminal.wait("Name of your first session")
        terminal.answer(NAME)
        terminal.wait("Its program")
        terminal.answer("bundled")
        terminal.wait("The folder")
        terminal.answer(str(fresh.folder / "work"))
        terminal.wait("Reply in the thread")
        root = workspace.wait_for_message(is_root)["ts"]
        workspace.say("alice", "agents", "hello there", root)
        terminal.wait("your reply is in")
        assert terminal.ended() == 0
        first = terminal.shown

    with talk(fresh) as terminal:
        assert terminal.ended() == 0
        second = terminal.shown

    assert fresh.count("hello there") == 1
    assert second.count("ok: ") >= 8
    text = fresh.config.read_text()
    assert text.startswith("# mine\n")
    assert "# loopback" in text
    block = yaml.safe_load(text)["channels"]["slack"]
    assert (block["enabled"], block["channel"]) == (True, workspace.channel_id("agents"))
    assert block["authorizedUsers"] == [workspace.user_id("alice")]
    file = fresh.paths.chat_secrets("slack")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == f"{APP_VARIABLE}={workspace.app_token}\n{BOT_VARIABLE}={workspace.bot_token}\n"
    seen = [first, second, text, *(_held(path) for path in _texts(fresh) if path != file)]
    assert not [one for one in seen if workspace.bot_token in one or workspace.app_token in one]
    assert fresh.cli("slack", "check").code == 0


def _held(path: Path) -> str:
    """Return what the file holds; a report that was taken in meanwhile holds nothing."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _texts(product: Product) -> list[Path]:
    return [path for path in product.folder.rglob("*") if path.is_file() and not path.is_symlink()]


def test_it_goes_on_where_it_was_left(workspace: WorkspaceThread, fresh: Product) -> None:
    """Somebody who closes the terminal after the tokens is not asked for them again; nothing is half-written."""
    with talk(fresh) as terminal:
        terminal.wait("Bot token")
        terminal.answer(workspace.bot_token)
        terminal.wait("App-level token (xapp")
        terminal.answer(workspace.app_token)
        terminal.wait("Channel: ")

    with talk(fresh) as terminal:
        before = terminal.wait("Channel: ")
        terminal.answer("xoxb-1-typed-where-all-can-see")
        terminal.wait("that is a token, and it was shown")
        terminal.answer("\x04")
        terminal.wait("Channel: ")

    assert "Bot token" not in before
    assert before.count("ok: ") == 4
    assert "xoxb" not in fresh.config.read_text()


def test_tokens_of_the_shell_are_kept_for_the_service(workspace: WorkspaceThread, fresh: Product) -> None:
    """A service that systemd starts has no variable of this shell."""
    with talk(fresh, **{BOT_VARIABLE: workspace.bot_token, APP_VARIABLE: workspace.app_token}) as terminal:
        shown = terminal.wait("Channel: ")

    assert "Bot token (" not in shown
    assert fresh.paths.chat_secrets("slack").read_text().count("\n") == 2


def test_without_a_terminal_it_says_so(fresh: Product) -> None:
    """A script gets the command to type, and nothing is changed."""
    done = fresh.cli("slack", "setup")

    assert done.code == 1
    assert "in a terminal" in done.err
    assert not fresh.paths.root.exists()


def test_a_host_behind_a_gateway_is_asked_for_no_token(workspace: WorkspaceThread, fresh: Product) -> None:
    """The chat's block has to be there, as on the gateway's host; then the tokens are said to be there."""
    block: dict[str, object] = {"apiUrl": workspace.api_url}
    document = {**fresh.document(), "standingSessions": {"enabled": False}, "channels": {"slack": block}}
    document["fleet"] = {"enabled": True, "host": "build"}
    fresh.configure(yaml.safe_dump(document))
    with talk(fresh) as terminal:
        told = terminal.wait("fleet.gateway: true")
        terminal.ended()
    assert "channels.slack is not enabled here" in " ".join(told.split())

    block |= {"enabled": True, "channel": "C0123456789", "authorizedUsers": ["U0123456789"]}
    fresh.configure(yaml.safe_dump(document))
    with talk(fresh, THE_LOOP_FLEET_URL="memory:") as terminal:
        assert "Bot token" not in terminal.wait("none are needed here")
    checked = fresh.cli("slack", "check")
    assert checked.code == 0
    assert "the tokens are on the hosts of this fleet" in " ".join(checked.out.split())
