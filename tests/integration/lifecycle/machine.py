"""A whole the-loop under whatever may happen to it, with what must hold after each step. No service runs by itself.

Its agents are bundled ones in real panes. Verbs are cut short between their effects as SIGKILL would; what a service
does besides, giving steps to deliveries, looking at the panes and bringing back what has crashed, is a rule like the
others, and so is the next service in its place.
"""

import os
import shutil
import signal
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.base import failpoints
from core.base.errors import CoreError
from core.base.failpoints import Failpoint
from core.delivery.deliverer import Deliverer
from core.delivery.saying import cancel_message, say
from core.lifecycle.look import get_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.supervise import Supervisor
from core.loops.scheduler import Scheduler
from core.model.loop import Loop, LoopStatus, Mode
from core.model.message import IN_FLIGHT, TICKS, WAITING, InboxRow, MessageState
from core.model.session import HoldKind, Live, SessionRecord
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.support.lines import entries
from tests.support.tmux import private_tmux, wait_until
from tests.support.world import ACTOR, VERBS, World, check_consistent

NAMES = ("scribe", "extra")
LIFTS = {
    HoldKind.STOPPED: {"start", "delete"},
    HoldKind.FAILED: {"start", "stop", "delete"},
    HoldKind.PAUSED: {"resume", "stop", "delete"},
}
POINTS = [f"{effect.value}:{side}" for effect in Failpoint for side in ("before", "after")]
STEPS = sorted(set(VERBS) - {"cancel"})
_SOON = 3.0  #: seconds within which what can be delivered is
_KEPT = WAITING | IN_FLIGHT | {MessageState.ACCEPTED, MessageState.CONFIRMED}


class Killed(BaseException):
    """Stands for SIGKILL within one process: nothing that the product catches catches it."""


@dataclass
class Seen:
    """What was true of a session when its mark was first seen: nothing of it may be undone while the mark stands."""

    hold: object
    turns: int
    waiting: list[str] = field(default_factory=list)  #: ids, in order


class Lifecycle(RuleBasedStateMachine):
    """A declared session, one that is created and deleted, and whatever may happen to them."""

    @initialize()
    def begin(self) -> None:
        """Make a world of its own for the run."""
        self.stack = ExitStack()
        self.private = self.stack.enter_context(private_tmux())
        folder = Path(tempfile.mkdtemp(prefix="lm-"))
        self.stack.callback(shutil.rmtree, folder, ignore_errors=True)
        world = World(folder, self.private.server.socket_name, self.private.folder, declared=("scribe",))
        self.world = replace(
            world, slack=True, command_seconds=2.0, harness="bundled", grace_seconds=1.0, restart="on-failure"
        )
        self.world.cwd.mkdir()
        self.number = 0
        self.marks: dict[str, Seen] = {}
        self.instances: dict[str, set[str]] = {}
        for verb, name in (("start", "scribe"), ("create", "extra")):
            assert not run(self.world.system(), verb, name, "")
            keep_prompted(self.world.system(), name)
        self.service = Service(self.world.system())

    def teardown(self) -> None:
        """End the run's tmux server, which ends its agents, and remove its files."""
        if hasattr(self, "service"):
            self.service.system.close()
        if hasattr(self, "stack"):
            run(self.world.system(), "stop-all", "", "")
            self.stack.close()

    # ------------------------------------------------------------ what may happen

    @rule(verb=st.sampled_from(STEPS), name=st.sampled_from(NAMES), crash_at=st.sampled_from(["", "", *POINTS]))
    def run_verb(self, verb: str, name: str, crash_at: str) -> None:
        """Run a verb as a process of its own would, which may be killed at a point that it passes."""
        system = self.world.system()
        before = {each: system.records.read(each) for each in NAMES}

        crashed = run(system, verb, name, crash_at)

        reconcile(self.world.system(), ACTOR)
        for each in NAMES:
            check_mark(system, each, before[each], verb if each == name else "")
        if not crashed:
            self._check_done(system, verb, name)

    @rule(name=st.sampled_from(NAMES), verb=st.sampled_from(["pause", "pause-hard", "resume", "start"]))
    def run_usual_verb(self, name: str, verb: str) -> None:
        """The same, more often, and to its end."""
        self.run_verb(verb, name, "")

    @rule(
        name=st.sampled_from(NAMES),
        text=st.sampled_from(["words", "sleep 20", "background 0.2", "ask permission"]),
        crash_at=st.sampled_from(["", "", "", *(point for point in POINTS if point.startswith("delivery."))]),
    )
    def say_something(self, name: str, text: str, crash_at: str) -> None:
        """Say something that is found again by its number; some of it works, asks, or leaves a background job."""
        self.number += 1
        told = text if text != "words" else f"words number {self.number}."
        with crashing(crash_at) as crash:
            crash.run(lambda: say(self.world.system(), name, told, actor=ACTOR, wait=_SOON))

    @rule(name=st.sampled_from(NAMES))
    def cancel_the_last(self, name: str) -> None:
        """Cancel what waits last."""
        system = self.world.system()
        waiting = [row for row in unsettled(system, name) if row.state in WAITING and row.message.kind.value == "say"]
        if waiting:
            ident = waiting[-1].message.id
            cancel_message(system, ident, ACTOR)
            if name in self.marks and ident in self.marks[name].waiting:
                self.marks[name].waiting.remove(ident)

    @rule()
    def let_a_service_work(self) -> None:
        """What a service does meanwhile: a look at every pane, what is due brought back, steps for every message."""
        before = {each: self.service.system.records.read(each) for each in NAMES}

        self.service.work()

        for name in NAMES:
            check_mark(self.service.system, name, before[name], "")
        self.service.check_subscriptions()

    @rule(
        name=st.sampled_from(NAMES),
        crash_at=st.sampled_from(["", "", *(point for point in POINTS if point.startswith(("loop.", "delivery.")))]),
    )
    def let_loops_fire(self, name: str, crash_at: str) -> None:
        """What is due is claimed, sent and given to the session, by a service that may be killed on the way."""
        with crashing(crash_at) as crash:
            crash.run(lambda: self.service.fire(name))
        if crash.crashed:
            self.begin_another_service()

    @rule()
    def begin_another_service(self) -> None:
        """The service is gone, and the next one adopts what lives."""
        self.service.system.close()
        self.service = Service(self.world.system())

        self.service.observer.survey()

        self.service.check_subscriptions()

    @rule()
    def kill_the_agents(self) -> None:
        """Kill every agent, as the kernel does when memory is short."""
        system = self.world.system()
        for pane in system.runner.survey().panes:
            if not pane.dead:
                os.kill(pane.pid, signal.SIGKILL)
        wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes), "the panes are dead")

    @rule()
    def lose_tmux(self) -> None:
        """End the tmux server and all that runs in it, as a reboot does."""
        if self.world.system().runner.survey().panes:
            self.private.close()

    # ------------------------------------------------------------ what must hold

    @invariant()
    def all_is_sound(self) -> None:
        """After a reconcile nothing is under way, nothing runs that should not, and every mark holds what it says."""
        if not hasattr(self, "world"):
            return
        system = self.world.system()
        reconcile(system, ACTOR)
        for name in NAMES:
            check_consistent(system, name)
            record = system.records.read(name)
            if record is None:
                self.marks.pop(name, None)
                continue
            system.ingest(record.uid)
            self._check_processes(system, record)
            self._check_marked(system, record)
            check_messages(system, record)
            check_ticks(system, record)

    def _check_processes(self, system: System, record: SessionRecord) -> None:
        """At most one process a session: nothing of an earlier instance lives."""
        known = self.instances.setdefault(record.uid, set())
        if record.instance_id:
            known.add(record.instance_id)
        for instance in known - {record.instance_id}:
            assert system.processes.marked(instance) == ()

    def _check_marked(self, system: System, record: SessionRecord) -> None:
        """No turn of anybody's wake after a mark, and under a pause nothing that waits is lost or passed by."""
        mark = (record.uid, record.generation, record.hold.kind) if record.hold is not None else None
        seen = self.marks.get(record.name)
        if mark is None:
            self.marks.pop(record.name, None)
            return
        paused = record.hold is not None and record.hold.kind is HoldKind.PAUSED
        if seen is None or seen.hold != mark:
            seen = self.marks[record.name] = Seen(mark, len(turns(system, record)))
        waiting = [row.message.id for row in system.inbox.unsettled(record.uid) if row.message.kind.value == "say"]
        assert len(turns(system, record)) == seen.turns
        if not paused:
            return
        rows = [system.inbox.get(ident) for ident in seen.waiting]
        assert all(row is not None and row.state in _KEPT for row in rows), rows
        kept = [ident for ident in waiting if ident in seen.waiting]
        assert kept == [ident for ident in seen.waiting if ident in kept]
        seen.waiting += [ident for ident in waiting if ident not in seen.waiting]

    def _check_done(self, system: System, verb: str, name: str) -> None:
        record = system.records.read(name)
        if record is None:
            return
        kind = record.hold.kind if record.hold else None
        if verb == "stop":
            assert kind is HoldKind.STOPPED
            assert get_standing(system, name).live is Live.ABSENT
        if verb == "start":
            assert kind in (None, HoldKind.PAUSED)
            assert get_standing(system, name).live is Live.LIVE
        if verb == "resume" and get_standing(system, name).live is Live.LIVE:
            assert kind is not HoldKind.PAUSED


class Service:
    """What a service does of its own accord, when it is told to."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.observer = ObserverWorker(system, lambda _: None)
        self._supervisor = Supervisor(system, lambda: system.settings)
        self._scheduler = Scheduler(system, lease=timedelta(seconds=1))

    def fire(self, name: str) -> None:
        """Fire what is due, whatever it is that holds it, and deliver what the session may get."""
        for _ in range(2):
            self._scheduler.look_at_everything()
            self._scheduler.turn()
            deliver(self.system, name)

    def work(self) -> None:
        """Look, take in, bring back and deliver, for as long as anything is about to follow."""
        end = self.system.clock.monotonic() + _SOON
        while True:
            self.observer.survey()
            self.observer.take_in()
            if self._supervisor.turn() >= 1.0 or self.system.clock.monotonic() > end:
                break
            self.system.clock.pause(0.02)
        for name in NAMES:
            self.fire(name)
        self.observer.survey()

    def check_subscriptions(self) -> None:
        """Assert that each live pane is watched, once, and nothing else is."""
        living = {pane.tag for pane in self.system.runner.survey().panes if not pane.dead}
        recorded = {record.instance_id for name in NAMES if (record := self.system.records.read(name))}
        assert self.observer.watching() == len(living & recorded)
        assert all(self.observer.watches(instance or "") for instance in living & recorded)


class crashing:
    """Raises Killed at one point, within the block."""

    def __init__(self, crash_at: str) -> None:
        self._crash_at = crash_at
        self.crashed = False

    def __enter__(self) -> "crashing":
        self._real = failpoints._crash_point
        failpoints._crash_point = self._point
        return self

    def __exit__(self, *_: object) -> None:
        failpoints._crash_point = self._real

    def _point(self, name: failpoints.Failpoint, when: str) -> None:
        if f"{name.value}:{when}" == self._crash_at:
            raise Killed

    def run(self, act: object) -> None:
        """Act; what is refused is refused, and each refusal is tested where it belongs."""
        assert callable(act)
        try:
            act()
        except Killed:
            self.crashed = True
        except CoreError:
            return


def run(system: System, verb: str, name: str, crash_at: str) -> bool:
    """Run the verb and tell whether it was killed."""
    with crashing(crash_at) as crash:
        crash.run(lambda: VERBS[verb](system, name))
    return crash.crashed


def check_mark(system: System, name: str, before: SessionRecord | None, verb: str) -> None:
    """Assert that the generation never falls and a mark goes only by the verb that lifts it, and is never weakened."""
    after = system.records.read(name)
    if before is None or after is None or after.uid != before.uid:
        return
    assert after.generation >= before.generation
    hold = before.hold
    if hold is None:
        return
    if verb in LIFTS[hold.kind]:
        return
    if hold.kind is HoldKind.PAUSED and hold.policy == "soft" and verb == "pause-hard":
        assert after.hold is not None
        assert after.hold.kind is HoldKind.PAUSED
        return
    assert after.hold == hold


def check_messages(system: System, record: SessionRecord) -> None:
    """Assert that what was confirmed was taken once, what was cancelled never, and all in the order it was said."""
    texts = turns(system, record)
    rows = [row for row in system.inbox.with_states(record.uid, frozenset(MessageState)) if numbered(row)]
    for row in rows:
        count = sum(row.message.text in text for text in texts)
        assert count <= 1, (row, texts)
        if row.state in (MessageState.CANCELLED, MessageState.REFUSED, *WAITING):
            assert count == 0, (row, texts)
    said = [row.message.text for row in reversed(rows)]
    taken = [text for each in texts for text in said if text in each]
    assert taken == sorted(taken, key=said.index), (said, taken)


def check_ticks(system: System, record: SessionRecord) -> None:
    """Assert that no tick was taken twice, and none that is known not to have gone in; a loop has one open run."""
    texts = turns(system, record)
    for row in system.inbox.with_states(record.uid, frozenset(MessageState)):
        if row.message.kind in TICKS:
            count = sum(f"#{row.message.marker}]" in text for text in texts)
            assert count <= (row.state not in (MessageState.CANCELLED, MessageState.FAILED, *WAITING)), (row, texts)
    loops = [run.loop_id for run in system.loops.open_runs(record.uid)]
    assert len(loops) == len(set(loops))
    kept = [loop for loop in system.loops.of_session(record.uid) if loop.keep_alive]
    assert all(loop.status is LoopStatus.ACTIVE for loop in kept)


def keep_prompted(system: System, name: str) -> None:
    """Give the session two loops that are nearly always due; one of them keeps its future open."""
    record = system.records.read(name)
    assert record is not None
    now = system.clock.now()
    for keep_alive in (True, False):
        ident = f"loop_{name}{'kept' if keep_alive else ''}"
        loop = Loop(ident, record.uid, name, "look at it", Mode.INTERVAL, ACTOR, now, timedelta(seconds=1))
        assert system.loops.add(replace(loop, keep_alive=keep_alive, next_run_at=now), 0)


def numbered(row: InboxRow) -> bool:
    """Return whether the message's text is found again."""
    return row.message.text.startswith("words number ")


def turns(system: System, record: SessionRecord) -> list[str]:
    """Return every text that a turn of any of the session's conversations took, each conversation in order."""
    texts: list[str] = []
    folder = system.paths.session(record.uid) / "agent" / "conversations"
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_ctime_ns):
        for entry in entries(path):
            if entry.get("type") == "user" and "origin" in entry:
                texts.append(str(entry["message"]["content"]))
    return texts


def unsettled(system: System, name: str) -> tuple[InboxRow, ...]:
    """Return what is in flight or waits for a session."""
    record = system.records.read(name)
    return system.inbox.unsettled(record.uid) if record else ()


def deliver(system: System, name: str) -> None:
    """Give the session's messages their steps until nothing moves for a moment."""
    record = system.records.read(name)
    if record is None:
        return
    deliverer = Deliverer(system)
    end = system.clock.monotonic() + _SOON
    while system.clock.monotonic() < end:
        following, now = deliverer.advance(record.uid), system.clock.now()
        if following is None or (following - now).total_seconds() > 1.0:
            return
        system.clock.pause(min(0.02, max(0.0, (following - now).total_seconds())))
