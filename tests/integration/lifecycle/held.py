"""What the tests of pause, resume and interrupt share: a bundled agent that works, waits, and has background jobs."""

import os
import signal
from collections.abc import Callable

import psutil

from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.model.activity import ActivityState
from core.model.message import InboxRow, Kind, MessageState
from core.session.system import System
from tests.support.lines import entries
from tests.support.talking import record_of, rows
from tests.support.tmux import PATIENCE, wait_until
from tests.support.world import ACTOR, recorded


def activity(system: System, name: str = "scribe") -> ActivityState | None:
    """Return what the session does by its own word."""
    uid, _ = record_of(system, name)
    system.ingest(uid)
    found = system.activities.get(uid)
    return found.state if found else None


def wait_for(system: System, state: ActivityState, name: str = "scribe") -> None:
    """Wait until the session says that it does this."""
    wait_until(lambda: activity(system, name) is state, f"{name} is {state.value}")


def tell(system: System, text: str, name: str = "scribe", wait: float = PATIENCE) -> MessageState:
    """Say something and return what became of it."""
    return say(system, name, text, actor=ACTOR, wait=wait).state


def work(system: System, seconds: int = 60, name: str = "scribe") -> None:
    """Begin a turn that works for so long."""
    assert tell(system, f"sleep {seconds}", name) is MessageState.CONFIRMED
    wait_for(system, ActivityState.BUSY, name)


def deliver(system: System, name: str = "scribe") -> None:
    """Give the session's messages the steps that a service would."""
    Deliverer(system).advance(record_of(system, name)[0])


def deliver_until(system: System, condition: Callable[[], object], what: str, name: str = "scribe") -> None:
    """Give the session's messages steps until the condition holds: a verb without a service waits for no turn."""
    uid, deliverer = record_of(system, name)[0], Deliverer(system)

    def holds() -> object:
        deliverer.advance(uid)
        return condition()

    wait_until(holds, what)


def begin_job(system: System, name: str = "scribe") -> int:
    """Have a background job begun, wait until its turn is over, and return its process: it ends when a test says so."""
    before = _jobs(system, name)
    assert tell(system, "background 600", name) is MessageState.CONFIRMED
    wait_until(lambda: between_turns(system, name), "the job runs on its own")
    [job] = _jobs(system, name) - before
    return job


def end_job(job: int) -> None:
    """End a background job; its harness tells of that by itself, a moment later."""
    os.kill(job, signal.SIGTERM)


def between_turns(system: System, name: str = "scribe") -> bool:
    """Return whether the session is busy with background jobs alone, by its own word."""
    uid, _ = record_of(system, name)
    system.ingest(uid)
    found = system.activities.get(uid)
    return found is not None and found.between_turns


def _jobs(system: System, name: str) -> set[int]:
    children = psutil.Process(pane_pid(system, name)).children(recursive=True)
    return {child.pid for child in children if _is_job(child)}


def _is_job(process: psutil.Process) -> bool:
    try:
        return process.cmdline() == ["sleep", "600"]
    except psutil.NoSuchProcess:  # a hook that has ended meanwhile, gathered or not
        return False


def notices(system: System, name: str = "scribe") -> list[InboxRow]:
    """Return the notices that were kept, oldest first."""
    system.ingest(record_of(system, name)[0])
    return [row for row in rows(system, name) if row.message.kind is Kind.NOTICE]


def turns(system: System, name: str = "scribe") -> list[str]:
    """Return every text that a turn took, whoever it came from, by the conversation's own file, in order."""
    record = recorded(system, name)
    texts: list[str] = []
    for path in system.paths.session(record.uid).rglob(f"{record.harness_session_id}.jsonl"):
        for entry in entries(path):
            if entry.get("type") == "user" and "origin" in entry:
                texts.append(str(entry["message"]["content"]))
    return texts


def pane_pid(system: System, name: str = "scribe") -> int:
    """Return the process of the session's pane."""
    pane = system.runner.survey().of_instance(record_of(system, name)[1])
    assert pane is not None
    return pane.pid


def kill(system: System, name: str = "scribe") -> None:
    """Kill the agent as the kernel does when memory is short, and wait until tmux tells."""
    pid, instance = pane_pid(system, name), record_of(system, name)[1]
    os.kill(pid, signal.SIGKILL)

    def dead() -> bool:
        pane = system.runner.survey().of_instance(instance)
        return pane is None or pane.dead

    wait_until(dead, "the pane is dead")
