"""A run: sessions and people, trouble, and the comparison once everything is settled."""

import random
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from embedded.workspace.thread import WorkspaceThread
from tests.chaos.judging import Said, Verdict, doubled_ticks, judge, numbers_in, rows_of, text_of
from tests.chaos.trouble import Trouble
from tests.support.product import Product, product
from tests.support.tmux import wait_until

_LONG = 1000  #: replies from which on lulls are taken, too
_COMMAND_SECONDS = 2  #: shorter than the longest freeze, so that lines refuse themselves


@dataclass(frozen=True)
class Plan:
    """How much of everything. `pause`: seconds between two replies of one person, at most."""

    people: int = 5
    sessions: int = 4
    replies: int = 2000
    seed: int = 0
    pause: float = 1.0
    settle_seconds: float = 180.0


def run(plan: Plan) -> tuple[Verdict, Mapping[str, int]]:
    """Run it and return what came of it, and the trouble that was made. Raises AssertionError if it cannot be run."""
    with WorkspaceThread(retry_scale=0.02, ack_seconds=2.0) as workspace, product(workspace) as running:
        people = [f"person{number}" for number in range(plan.people)]
        sessions = [f"agent{number}" for number in range(plan.sessions)]
        for person in people:
            workspace.add_user(person)
            workspace.join(person, "agents")
        _configure(running, people, sessions)
        service = running.serve().wait_swept()
        threads = {name: running.root(name) for name in sessions}
        _wait_bound(running, sessions)
        chance = random.Random(plan.seed)
        trouble = Trouble(running, service, chance, lulls=2 if plan.replies >= _LONG else 0)
        trouble.start()
        said = talk(workspace, plan.seed, plan.replies, plan.pause, people, threads)
        trouble.end()
        return _settled(running, plan, said, threads), trouble.made


def _configure(running: Product, people: Sequence[str], sessions: Sequence[str]) -> None:
    document = running.document()
    document["routing"]["tmux"]["commandTimeoutSeconds"] = _COMMAND_SECONDS
    block = running.slack_block(
        authorizedUsers=[running.workspace.user_id(person) for person in people], verbosity="quiet"
    )
    loop = {"name": "watch", "instruction": "look at the build", "interval": "5s", "keepAlive": True}
    session = {"prompt": "Look after it.", "slack": {"enabled": True}, "loops": [loop]}
    declared = [{"name": name, **session} for name in sessions]
    running.configure(
        routing=document["routing"],
        limits={"queuedPerSession": 5000},
        loops={"minInterval": "5s"},
        channels={"slack": block},
        standingSessions={"enabled": True, "sessions": declared},
    )


def _wait_bound(running: Product, sessions: Sequence[str]) -> None:
    wait_until(
        lambda: {event["name"] for event in running.events("standing.announced")} >= set(sessions),
        "every session's thread is bound",
        40,
    )


def talk(
    workspace: WorkspaceThread,
    seed: int,
    replies: int,
    pause: float,
    people: Sequence[str],
    threads: Mapping[str, str],
) -> list[Said]:
    """Let everybody speak at the same time, each one thing after the other, and return all that was said.

    `pause`: seconds between two replies of one person, at most. `threads`: each session's, by how it is named here.
    """
    said: list[Said] = []
    lock = threading.Lock()

    def speak(person: str, share: Sequence[int], chance: random.Random) -> None:
        for number in share:
            session = chance.choice(sorted(threads))
            ts = workspace.say(person, "agents", text_of(number), threads[session])
            with lock:
                said.append(Said(number, person, session, ts))
            time.sleep(chance.uniform(0, pause))

    speakers = [
        threading.Thread(
            target=speak,
            args=(person, range(place, replies, len(people)), random.Random(seed * 1000 + place)),
        )
        for place, person in enumerate(people)
    ]
    for speaker in speakers:
        speaker.start()
    for speaker in speakers:
        speaker.join()
    assert len(said) == replies, "somebody could not speak"
    return sorted(said, key=lambda one: one.number)


def report(verdict: Verdict, made: Mapping[str, int], seed: int, seconds: float) -> int:
    """Print what came of a run, the trouble that was made, and how to repeat it; return the exit code."""
    print("trouble: " + ", ".join(f"{count} {kind}" for kind, count in sorted(made.items())))
    print(verdict)
    print(f"{'well' if verdict.good else 'NOT WELL'} after {seconds:.0f} s; again: --seed {seed}")
    return 0 if verdict.good else 1


def _settled(running: Product, plan: Plan, said: Sequence[Said], threads: Mapping[str, str]) -> Verdict:
    """Return the verdict once nothing is lost or open any more, or when the time is over."""

    def look() -> Verdict:
        texts = {name: running.taken(name) for name in threads}
        taken = {name: numbers_in(found) for name, found in texts.items()}
        verdict = judge(said, taken, rows_of(running, threads))
        verdict.ticks.extend(tick for name, found in texts.items() for tick in doubled_ticks(name, found))
        return verdict

    def is_settled() -> bool:
        try:
            verdict = look()
        except sqlite3.OperationalError:  # the service is writing
            return False
        return not (verdict.lost or verdict.open or verdict.unsaid)

    with suppress(AssertionError):  # then the verdict says what is missing
        wait_until(is_settled, "nothing is lost or open", plan.settle_seconds, every=0.5)
    return look()
