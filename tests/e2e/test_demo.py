"""`the-loop demo`: the whole product in one folder, as its printed commands say."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from core.base.paths import StatePaths
from core.config.loading import USUAL_DEMO
from core.process.control import ask
from core.process.presence import running_service
from embedded.demo import folder_of
from tests.support.product import Done, Product, end_tmux
from tests.support.tmux import alive, wait_until
from tests.support.trees import contents, lay_traps

SESSION = "guide"
_SERVE = """
import os, sys
from pathlib import Path
from core.config.loading import load
from core.service.assembly import build_service
environ = dict(os.environ)
build_service(load(Path(sys.argv[1]), environ), environ).run()
"""


class Demo:
    """One run of the demo in a folder."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.folder = folder
        self._process = process
        self._output = output

    def text(self) -> str:
        """Return what it has printed so far."""
        return self._output.read_text()

    def wait_up(self) -> "Demo":
        """Wait until it has printed how it is addressed, and its session has been announced."""
        wait_until(lambda: "Ctrl-C ends" in self.text() or self._process.poll() is not None, "the demo is up")
        assert self._process.poll() is None, self.text()
        ask(self.folder / "state" / "local" / "service.sock", "sweep", 30.0)
        return self

    def command(self, label: str) -> list[str]:
        """Return the printed command with that label, as a shell would take it."""
        [line] = [line for line in self.text().splitlines() if line.strip().startswith(label)]
        return shlex.split(line.partition(label)[2].partition("   (")[0])

    def workspace(self) -> dict[str, Any]:
        """Return the workspace's facts."""
        facts: dict[str, Any] = json.loads((self.folder / "workspace.json").read_text())
        return facts

    @property
    def port(self) -> int | None:
        """Return the port of the page."""
        return urlsplit(str(self.workspace()["url"])).port

    def told(self, event: str) -> bool:
        """Return whether the event log holds such an event."""
        log = self.folder / "state" / "local" / "events.jsonl"
        return log.exists() and f'"event": "{event}"' in log.read_text()

    def kill(self) -> None:
        """Kill it, so that it can end nothing itself."""
        self._process.kill()
        self._process.wait(30)

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(30)


@pytest.fixture
def folder(alone: Product) -> Path:
    """Return the folder in which the usual demo keeps all it has."""
    return folder_of(USUAL_DEMO, alone.environ())


@contextmanager
def demo(alone: Product, folder: Path, *options: str) -> Iterator[Demo]:
    """Run the demo, and end its tmux server with it if the test left one."""
    process, output = alone.begin("demo", "--name", folder.name, *options)
    running = Demo(folder, process, output)
    try:
        yield running.wait_up()
    finally:
        if process.poll() is None:
            running.interrupt()


@pytest.fixture(autouse=True)
def _no_server_stays(alone: Product) -> Iterator[None]:
    """End the demos' tmux servers; their sockets are in this product's own folder."""
    yield
    folder = alone.folder / "tmux" / f"tmux-{os.getuid()}"
    for socket in folder.iterdir() if folder.exists() else ():
        end_tmux(socket.name, alone.environ())


def run(alone: Product, words: list[str]) -> Done:
    """Run a printed command as it stands."""
    done = subprocess.run(
        words, env=alone.environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def wait_well(alone: Product, running: Demo) -> None:
    """Wait until the printed status command says that all of it is up; connections take a moment."""
    wait_until(lambda: run(alone, running.command("is it up?")).code == 0, "all of it is up")


def not_copied(name: str) -> bool:
    """Tell whether a file of a demo is one that cannot be copied: a socket, or the service's pipe."""
    return name.endswith((".sock", "poke")) or name.startswith("tmux")


def commands() -> list[list[str]]:
    """Return the command line of every process."""
    listed = subprocess.run(["ps", "-axww", "-o", "args="], capture_output=True, text=True, timeout=30, check=True)
    return [line.split() for line in listed.stdout.splitlines()]


def pane(alone: Product, socket: str = "the-loop-demo") -> int:
    """Return the pid of the demo's pane."""
    words = ["tmux", "-L", socket, "list-panes", "-t", f"=loop-standing-{SESSION}:", "-F", "#{pane_pid}"]
    return int(run(alone, words).out)


def test_what_lies_in_the_current_folder_is_not_run(alone: Product, folder: Path) -> None:
    """A cloned repository may bring modules of our names, and of the standard library's."""
    mark = lay_traps(alone.folder / "work", "bot.__init__", "core.__init__", "argparse", "asyncio.__init__", "json")

    with demo(alone, folder):
        pass

    assert not mark.exists()


def test_nothing_that_lies_where_it_is_typed_is_its_state(alone: Product, folder: Path) -> None:
    """An update of a repository may bring a `.demo` with sessions in it, with words for its agents."""
    with demo(alone, folder) as running:
        run(alone, running.command("end it all"))
    shipped = alone.folder / "work" / ".demo"
    shutil.copytree(folder, shipped, ignore=lambda _, names: [name for name in names if not_copied(name)])
    record = shipped / "state" / "local" / "standing" / f"{SESSION}.json"
    evil = {**json.loads(record.read_text()), "name": "evil", "uid": "s-evil00000001", "status": "running"}
    record.with_name("evil.json").write_text(json.dumps({**evil, "phase": "stopping", "harness": "bundled"}))
    before = contents(shipped)

    with demo(alone, folder) as running:
        wait_well(alone, running)
        listed = run(alone, [*running.command("is it up?")[:-1], "standing", "list", "--json"])

    assert [row["name"] for row in listed.json] == [SESSION]
    assert contents(shipped) == before
    assert folder.is_relative_to(alone.folder / "home")


def test_a_name_that_leads_elsewhere_is_refused(alone: Product) -> None:
    """It would name a folder that is not among the user's own state."""
    done = alone.program(["demo", "--name", "../../../elsewhere"])

    assert (done.code, "is no demo name" in done.err) == (2, True)


def test_an_own_configuration_is_tried_beside_the_demos_own_session(alone: Product, folder: Path) -> None:
    """Its sessions and harnesses run with the demo's chat, state and tmux server; nothing of it is touched."""
    own = alone.folder / "own.yaml"
    block = {"enabled": True, "channel": "C0REAL0000", "authorizedUsers": ["U0REAL0000"]}
    sessions = [{"name": "scribe", "harness": "parrot", "slack": {"enabled": True, "channel": "C0REAL1111"}}]
    parrot = {"start": [sys.executable, "-c", "print('squawk'); input()"], "ready": "squawk"}
    text = {"state": {"root": "mine"}, "channels": {"slack": block}, "harnesses": {"parrot": parrot}}
    own.write_text(json.dumps({**text, "standingSessions": {"enabled": True, "sessions": sessions}}))

    with demo(alone, folder, "--config", str(own)) as running:
        program = running.command("is it up?")[:-1]
        listing = [*program, "standing", "list", "--json"]
        wait_until(lambda: all(row["slackChannel"] for row in run(alone, listing).json), "both have a thread")
        listed = run(alone, listing).json
        run(alone, running.command("end it all"))
    broken = alone.program(["demo", "--config", str(alone.folder / "nowhere.yaml")])

    channel = running.workspace()["channels"]["agents"]
    assert {row["name"]: row["slackChannel"] for row in listed} == {SESSION: channel, "scribe": channel}
    assert [row["harness"] for row in listed if row["name"] == "scribe"] == ["parrot"]
    assert not (alone.folder / "mine").exists()
    assert (broken.code, "no such file" in broken.err) == (2, True)


def test_its_printed_commands_work_as_printed(alone: Product, folder: Path) -> None:
    """say reaches the agent, status is well, events and the pane are shown, stop ends it all."""
    with demo(alone, folder) as running:
        said = run(alone, running.command("speak to it"))
        wait_well(alone, running)
        status = run(alone, running.command("is it up?"))
        events = run(alone, running.command("what happened"))
        attach = run(alone, [*running.command("the pane"), "--json"])
        without_terminal = run(alone, running.command("the pane"))
        stopped = run(alone, running.command("end it all"))

        assert (said.code, said.out.splitlines()[:1]) == (0, [f"{SESSION}: confirmed"])
        assert (status.code, "slack: running" in status.out) == (0, True)
        assert "standing.announced" in events.out
        assert attach.json["command"][0] == "tmux"
        assert (without_terminal.code, "standing screen guide" in without_terminal.err) == (1, True)
        assert stopped.code == 0
        assert "Traceback" not in running.text()


def test_ctrl_c_ends_page_and_service_and_leaves_the_pane(alone: Product, folder: Path) -> None:
    """The session lives on; the second run adopts it, finds its thread and takes the same port."""
    with demo(alone, folder) as running:
        port, pid = running.port, pane(alone)
        code = running.interrupt()

    assert code == 0
    assert "Ctrl-C was pressed. The session `guide` lives on in tmux" in running.text()
    assert alive(pid)
    with demo(alone, folder) as again:
        assert again.port == port
        assert pane(alone) == pid
        assert again.told("standing.adopted")
        wait_well(alone, again)


def test_the_page_ends_with_a_killed_demo_and_comes_back_on_its_port(alone: Product, folder: Path) -> None:
    """No process is left on the workspace's file; the next run serves the page where it was."""
    with demo(alone, folder) as running:
        port = running.port
        running.kill()

    with demo(alone, folder) as again:
        assert again.port == port
        database = str(folder / "workspace.db")
        pages = [words for words in commands() if "embedded.workspace" in words and database in words]
        assert len(pages) == 1


def test_a_stopped_demo_resumes_the_conversation(alone: Product, folder: Path) -> None:
    """After its stop command the next run brings back the same conversation in the same thread."""
    record = folder / "state" / "local" / "standing" / f"{SESSION}.json"
    with demo(alone, folder) as running:
        wait_until(lambda: running.told("standing.announced"), "the thread is there")
        assert run(alone, running.command("end it all")).code == 0
        before = json.loads(record.read_text())
        wait_until(lambda: "it was told to stop" in running.text(), "it says that it has ended")
        assert "The session `guide` does not run any more" in running.text()

    with demo(alone, folder) as again:
        wait_until(lambda: again.told("standing.resumed"), "the session is resumed")
        after = json.loads(record.read_text())
        assert after["harnessSessionId"] == before["harnessSessionId"]
        assert after["thread"] == before["thread"]


def test_a_guide_that_was_stopped_by_name_is_named_with_what_starts_it(alone: Product, folder: Path) -> None:
    """The page is up and nobody answers there: the demo says why, and the command that it prints mends it."""
    with demo(alone, folder) as running:
        program = running.command("is it up?")[:-1]
        assert run(alone, [*program, "standing", "stop", SESSION]).code == 0

    with demo(alone, folder) as again:
        [line] = [line for line in again.text().splitlines() if f"{SESSION} is stopped by" in line]
        start = shlex.split(again.text().partition(line)[2].strip().splitlines()[0])
        started = run(alone, start)

        assert started.code == 0
        wait_well(alone, again)


def test_two_demos_side_by_side_do_not_meet(alone: Product, folder: Path) -> None:
    """Each has its own port, its own pane and its own agent."""
    other = folder_of("other", alone.environ())
    with demo(alone, folder) as first, demo(alone, other) as second:
        words = [run(alone, running.command("speak to it")) for running in (first, second)]
        for running in (first, second):
            wait_well(alone, running)

        assert first.port != second.port
        assert [(said.code, said.out.splitlines()[0]) for said in words] == [(0, f"{SESSION}: confirmed")] * 2


def test_a_second_demo_in_the_same_folder_is_refused_and_touches_nothing(alone: Product, folder: Path) -> None:
    """The first one's files stay as they are; the refusal names its process and what to do."""
    with demo(alone, folder) as running:
        before = [(folder / name).read_bytes() for name in ("workspace.json", "cli-config.yaml")]

        second = alone.program(("demo",))

        assert second.code == 1
        assert "--name" in second.err
        assert running.workspace()["page_url"] in second.err
        assert "Traceback" not in second.err
        assert [(folder / name).read_bytes() for name in ("workspace.json", "cli-config.yaml")] == before
        assert run(alone, running.command("speak to it")).code == 0


def test_it_keeps_its_tokens_to_itself(alone: Product, folder: Path) -> None:
    """What it prints and writes into its state holds no token; its own files are private."""
    with demo(alone, folder) as running:
        tokens = [running.workspace()["bot_token"], running.workspace()["app_token"]]
        state = contents(folder / "state")
        texts = [running.text().encode(), (folder / "cli-config.yaml").read_bytes(), *state.values()]

        assert str(StatePaths(folder / "state").database) in state
        assert not [token for token in tokens for text in texts if token.encode() in text]
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "workspace.log").stat().st_mode & 0o777 == 0o600
        assert (folder / "workspace.json").stat().st_mode & 0o777 == 0o600


def test_what_ended_a_demo_names_what_brings_it_back(alone: Product, folder: Path) -> None:
    """Its status names the demo's own command; `start` and `restart` would bring it up without its page, and refuse."""
    with demo(alone, folder) as running:
        program = running.command("is it up?")[:-1]
        stopped = run(alone, running.command("end it all"))
        wait_until(lambda: "it was told to stop" in running.text(), "the demo has ended")

    status = run(alone, [*program, "status"])
    refused = [run(alone, [*program, verb]) for verb in ("start", "restart", "serve")]

    assert stopped.code == 0
    assert "this brings it up again: `make run`, or" in status.out
    assert f"{program[0]} start" not in status.out
    for done in refused:
        assert (done.code, " demo`" in done.err) == (1, True)


def test_a_service_without_a_page_gives_way_to_the_demo(alone: Product, folder: Path) -> None:
    """The next run says so, ends it, leaves its session, and prints a page that answers."""
    with demo(alone, folder) as running:
        pid = pane(alone)
        running.interrupt()
    config = folder / "cli-config.yaml"
    service = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(config)],
        env=alone.environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_until(lambda: running_service(StatePaths(folder / "state").service_lock) == service.pid, "it serves")

        with demo(alone, folder) as again:
            assert "a service without a page" in again.text()
            assert service.wait(30) is not None
            assert pane(alone) == pid
            with urlopen(str(again.workspace()["page_url"]), timeout=10) as page:
                assert page.status == 200
            wait_well(alone, again)
    finally:
        service.kill()
        service.wait(30)
