"""What an agent can do by the command line in its own pane, and what it can see of our secrets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lines import entries
from tests.support.product import APP_VARIABLE, BOT_VARIABLE, NAME, Product, product
from tests.support.tmux import wait_until
from tests.support.trees import contents, modes


def pane_environment(running: Product, name: str = NAME) -> dict[str, str]:
    """Return the environment of the program in the session's pane."""
    raw = Path(f"/proc/{running.panes()[name]}/environ").read_bytes()
    return dict(entry.decode().split("=", 1) for entry in raw.split(b"\0") if b"=" in entry)


def two_agents(running: Product) -> dict[str, str]:
    """Start `builder` beside `scribe`, and return the environment of its agent."""
    started = [
        running.cli("standing", "create", "builder", "--prompt", "Build."),
        running.cli("standing", "start", NAME),
    ]
    assert [done.code for done in started] == [0, 0], started
    return pane_environment(running, "builder")


@pytest.fixture(scope="module")
def pair() -> Iterator[Product]:
    """Give a product with both agents to all of the tests that end neither."""
    with product() as running:
        two_agents(running)
        yield running


@pytest.fixture
def agents(pair: Product) -> dict[str, str]:
    """Give the environment of the agent `builder`, beside which `scribe` runs."""
    return pane_environment(pair, "builder")


def test_an_agent_finds_its_own_the_loop_and_looks(pair: Product, agents: dict[str, str]) -> None:
    """Without any option the command in its pane reads the configuration that the session was started with."""
    listed = pair.program(("standing", "list", "--json"), env=agents)
    got = pair.program(("standing", "get", NAME, "--json"), env=agents)

    assert (listed.code, [row["name"] for row in listed.json]) == (0, ["builder", NAME])
    assert (got.code, got.json["live"]) == (0, "live")


def test_what_an_agent_says_is_framed_as_an_agents(pair: Product, agents: dict[str, str]) -> None:
    """The other agent sees who speaks, by the name of the session and nothing that the caller chose."""
    said = pair.program(("standing", "say", NAME, "--text", "I need the keys", "--json"), env=agents)

    assert (said.code, said.json["state"]) == (0, "confirmed")
    assert pair.times("I need the keys") == 1
    [taken] = [text for text in pair.taken() if "I need the keys" in text]
    assert taken.startswith("[agent builder #")
    assert pair.events("standing.said")[-1]["actor"] == "agent:builder"


@pytest.mark.parametrize(
    "words", [("standing", "stop", NAME), ("standing", "start", NAME), ("standing", "delete", "builder"), ("stop",)]
)
def test_an_agent_is_refused_what_changes_sessions(
    pair: Product, agents: dict[str, str], words: tuple[str, ...]
) -> None:
    """Exit 1, nothing happens, and the remedy is its operator."""
    before = pair.panes()

    refused = pair.program((*words, "--json"), env=agents)

    assert (refused.code, refused.json["error"]["code"]) == (1, "not_permitted")
    assert pair.panes() == before


def test_an_operator_inside_a_pane_can_say_so(alone: Product) -> None:
    """--as-operator is obeyed and leaves an event that names the instance."""
    agents = two_agents(alone)

    stopped = alone.program(("--as-operator", "standing", "stop", NAME, "--json"), env=agents)

    [override] = alone.events("service.operator_override")
    assert (stopped.code, stopped.row["outcome"]) == (0, "stopped")
    assert (override["instance"], override["detail"]) == (agents["THE_LOOP_INSTANCE"], "stop")


def test_no_token_leaves_the_service(talking: Product) -> None:
    """Neither files, output, events, tmux, the pane's environment nor any argument holds a token's value."""
    service = talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.say("alice", "agents", "time", thread)
    talking.wait_reply(thread, "It is ")
    talking.cli("standing", "restart", NAME)

    [pid] = talking.panes().values()
    seen = contents(talking.paths.root)
    seen["the service's output"] = service.output().encode()
    seen["tmux"] = talking.tmux("show-environment", "-g").encode()
    seen["the pane's environment"] = Path(f"/proc/{pid}/environ").read_bytes()
    seen["the server's environment"] = Path(
        f"/proc/{talking.tmux('display-message', '-p', '#{pid}').strip()}/environ"
    ).read_bytes()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        seen[str(process)] = _read(process)
    tokens = [talking.workspace.bot_token, talking.workspace.app_token]
    assert [(token[:5], place) for place, text in seen.items() for token in tokens if token.encode() in text] == []


def test_the_pane_knows_neither_our_variables_nor_its_outer_terminal(talking: Product) -> None:
    """Its environment names its instance, the configuration and a file, and nothing else of ours."""
    talking.serve().wait_swept()

    environment = pane_environment(talking)

    ours = {name for name in environment if name.startswith("THE_LOOP_")}
    assert ours == {"THE_LOOP_INSTANCE", "THE_LOOP_CONFIG", "THE_LOOP_MCP_TOKEN_FILE"}
    assert environment["THE_LOOP_CONFIG"] == str(talking.config)
    assert {BOT_VARIABLE, APP_VARIABLE}.isdisjoint(environment)


def test_everything_in_the_state_root_is_private(talking: Product) -> None:
    """Folders 0700, files 0600, but for what is to be run."""
    talking.serve().wait_swept()
    talking.root()

    found = modes(talking.paths.root)

    assert talking.paths.database in found
    assert talking.paths.root.stat().st_mode & 0o777 == 0o700
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


def test_texts_are_in_the_event_log_by_hash_alone(talking: Product) -> None:
    """What people and the agent say is told by id, length and hash."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.say("alice", "agents", "the combination is 4711", thread)
    talking.wait_reply(thread, "4711")
    wait_until(lambda: any("4711" in m["text"] for m in talking.workspace.replies("agents", thread)), "the answer")

    log = talking.paths.events.read_text()

    assert "4711" not in log
    assert all(
        set(event["text"]) == {"id", "length", "sha256"} for event in entries(talking.paths.events) if "text" in event
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""
