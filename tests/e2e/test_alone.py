"""The command line without a service: sessions run, take messages, stop and resume, and every refusal helps."""

from pathlib import Path

import pytest

from tests.support.product import NAME, Product
from tests.support.tmux import alive, wait_until

BROKEN = """\
state: {{root: {state}}}
routing:
  defaultHarnes: bundled
  tmux: {{socketName: {socket}}}
limits: {{queuedPerSession: many}}
standingSessions:
  enabled: true
  sessions:
    - {{name: scribe, autoStrat: true}}
"""


def broken(alone: Product) -> None:
    """Write a configuration in which three keys are wrong."""
    alone.configure(BROKEN.format(state=alone.paths.root, socket=alone.socket))


def test_start_say_stop_and_resume_without_a_service(alone: Product) -> None:
    """A say is confirmed by the agent's own record; after a stop the same conversation is resumed."""
    started = alone.cli("standing", "start", NAME, "--json")
    said = alone.cli("standing", "say", NAME, "--text", "the first word", "--json")
    conversation = alone.record()["harnessSessionId"]
    stopped = alone.cli("standing", "stop", NAME, "--json")
    resumed = alone.cli("standing", "start", NAME, "--json")
    alone.cli("standing", "say", NAME, "--text", "the second word")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert (said.code, said.json["state"], said.json["delivered"]) == (0, "confirmed", True)
    assert (stopped.code, stopped.row["outcome"]) == (0, "stopped")
    assert (resumed.code, resumed.row["outcome"]) == (0, "resumed")
    assert alone.record()["harnessSessionId"] == conversation
    assert (alone.times("the first word"), alone.times("the second word")) == (1, 1)


def test_a_message_to_a_stopped_session_names_the_start_command(alone: Product) -> None:
    """say never starts anything: it is refused with 1 and the exact command that helps."""
    alone.cli("standing", "start", NAME)
    alone.cli("standing", "stop", NAME)

    said = alone.cli("standing", "say", NAME, "--text", "hello", "--json")

    assert said.code == 1
    assert said.json["error"]["code"] == "not_running"
    assert f"standing start {NAME}`" in said.json["error"]["remedy"]
    assert alone.panes() == {}


def test_a_message_by_standard_input_and_by_file(alone: Product) -> None:
    """`-` reads standard input, `--file` a file; both arrive whole."""
    alone.cli("standing", "start", NAME)
    file = alone.folder / "message.txt"
    file.write_text("from a file: äöü 漢字")

    first = alone.cli("standing", "say", NAME, "-", stdin=b"from a pipe\nin two lines", env={})
    second = alone.cli("standing", "say", NAME, "--file", str(file))

    assert (first.code, second.code) == (0, 0)
    assert alone.times("from a pipe\nin two lines") == 1
    assert alone.times("from a file: äöü 漢字") == 1


def test_a_text_that_is_no_utf8_is_refused(alone: Product) -> None:
    """Bytes of another encoding are bad input, with the remedy."""
    alone.cli("standing", "start", NAME)

    said = alone.cli("standing", "say", NAME, "-", "--json", stdin=b"\xff\xfe")

    assert said.code == 2
    assert "UTF-8" in said.json["error"]["message"]


def test_a_created_session_is_told_apart_from_a_declared_one(alone: Product) -> None:
    """create, list, delete; a declared one is refused to delete, and a taken name to create."""
    created = alone.cli("standing", "create", "extra", "--prompt", "Help.", "--json")
    taken = alone.cli("standing", "create", "extra", "--json")
    rows = alone.cli("standing", "list", "--json").json
    refused = alone.cli("standing", "delete", NAME, "--json")
    deleted = alone.cli("standing", "delete", "extra", "--json")

    assert (created.code, created.row["outcome"]) == (0, "started")
    assert (taken.code, taken.json["error"]["code"]) == (1, "name_taken")
    assert [(row["name"], row["declared"]) for row in rows] == [("extra", False), (NAME, True)]
    assert (refused.code, refused.json["error"]["code"]) == (1, "declared_session")
    assert (deleted.code, deleted.row["outcome"]) == (0, "deleted")
    assert alone.panes() == {}


def test_a_malformed_configuration_is_told_whole(alone: Product) -> None:
    """Every wrong key with its line, at once, and exit 2."""
    broken(alone)

    listed = alone.cli("standing", "list")

    assert listed.code == 2
    assert listed.out == ""
    for key, line in (("routing.defaultHarnes", 3), ("limits.queuedPerSession", 5), ("autoStrat", 9)):
        assert key in listed.err
        assert f"{alone.config}:{line}" in listed.err


@pytest.mark.parametrize("verb", ["start", "status"])
def test_the_lifecycle_shows_a_malformed_configuration_as_one_row(alone: Product, verb: str) -> None:
    """One row `misconfigured` stands for all sessions; nothing is started."""
    broken(alone)

    answer = alone.cli(verb, "--json")

    [row] = answer.json["standingSessions"]
    assert answer.code == 1
    assert (row["outcome"], answer.json["ok"]) == ("misconfigured", False)
    assert "autoStrat" in row["detail"]
    assert alone.panes() == {}


def test_stop_works_with_a_broken_configuration(alone: Product) -> None:
    """What runs is ended by what can still be read of the file, and what is wrong is told."""
    alone.cli("standing", "start", NAME)
    [pid] = alone.panes().values()
    broken(alone)

    stopped = alone.cli("standing", "stop", NAME, "--json")

    assert (stopped.code, stopped.row["outcome"]) == (0, "stopped")
    assert "autoStrat" in stopped.err
    assert not alive(pid)
    assert stopped.row["declared"]  # what cannot be read says nothing about entries that were removed
    assert "removed" not in stopped.row["detail"]


def test_the_lifecycle_stop_works_with_a_broken_configuration(alone: Product) -> None:
    """`the-loop stop` ends everything, too."""
    alone.cli("standing", "start", NAME)
    [pid] = alone.panes().values()
    broken(alone)

    stopped = alone.cli("stop", "--json")

    assert stopped.code == 0
    assert [row["outcome"] for row in stopped.json["standingSessions"]] == ["stopped"]
    assert not alive(pid)


def test_stop_works_with_a_corrupted_database(alone: Product) -> None:
    """The queue cannot be cancelled, but the agent ends, and the answer says what was wrong."""
    alone.cli("standing", "start", NAME)
    [pid] = alone.panes().values()
    for suffix in ("", "-wal", "-shm"):
        path = Path(f"{alone.paths.database}{suffix}")
        if path.exists():
            path.write_bytes(b"this is no database" * 500)

    stopped = alone.cli("standing", "stop", NAME, "--json")

    assert (stopped.code, stopped.row["outcome"]) == (0, "stopped")
    assert not alive(pid)
    assert alone.record()["hold"]["kind"] == "stopped"
    assert "database" in stopped.row["detail"] + stopped.err


def test_stop_ends_the_pane_of_a_record_that_cannot_be_read(alone: Product) -> None:
    """The pane that carries our tag ends; the file stays as it is, and verbs on it name its path."""
    alone.cli("standing", "start", NAME)
    [pid] = alone.panes().values()
    path = alone.paths.records / f"{NAME}.json"
    path.write_text("{ not json")

    stopped = alone.cli("standing", "stop", NAME, "--json")
    said = alone.cli("standing", "say", NAME, "--text", "hello", "--json")
    row = alone.cli("standing", "get", NAME, "--json").json

    assert not alive(pid)
    assert stopped.row["outcome"] in ("stopped", "unreadable")
    assert path.read_text() == "{ not json"
    assert (said.code, said.json["error"]["code"]) == (1, "record_unreadable")
    assert str(path) in said.json["error"]["message"]
    assert (row["outcome"], str(path) in row["detail"]) == ("unreadable", True)


def test_an_agent_that_left_by_itself_is_seen_as_dead(alone: Product) -> None:
    """After /exit the row says dead, status fails, and say names the start command."""
    alone.cli("standing", "start", NAME)
    [pid] = alone.panes().values()
    alone.cli("standing", "say", NAME, "--raw", "--text", "/exit", "--no-wait")
    alone.cli("standing", "say", NAME, "--text", "are you gone?", "--wait", "5")
    wait_until(lambda: not alive(pid), "the agent has left")
    target = f"=loop-standing-{NAME}:"
    wait_until(lambda: alone.tmux("display-message", "-p", "-t", target, "#{pane_dead}").strip() == "1", "tmux knows")

    row = alone.cli("standing", "get", NAME, "--json").json
    said = alone.cli("standing", "say", NAME, "--text", "hello", "--json")

    assert (row["live"], row["running"]) == ("dead", False)
    assert said.code == 1
    assert f"standing start {NAME}`" in said.json["error"]["remedy"]
