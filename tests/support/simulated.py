"""A the-loop whose time passes when it is told to: real files and database, and panes that are played.

What is played stands at the boundary of a process: tmux with the agents in it. An agent reports by its hooks, as files
in its spool, when its turns begin and end.
"""

import itertools
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from core.base.errors import TmuxSilent
from core.base.names import target_for
from core.base.values import replace
from core.config.settings import ChannelBlock, Routing, Settings
from core.delivery.deliverer import Deliverer
from core.loops.scheduler import Scheduler
from core.model.framing import PASTE_END, PASTE_START, SUBMIT
from core.model.loop import Loop, Mode
from core.model.pane import Pane, Paste, Receipt, Survey, Typing, View
from core.model.pane import Written as Outcome
from core.model.session import LastExit, SessionRecord, Status
from core.service.wiring import build_system
from core.session.system import System
from core.tmux.runner import Runner
from embedded.agent.conversation import Conversation
from tests.unit.store.samples import StandingClock, a_record


class Recorded(Conversation):
    """A conversation's record, by the clock of the simulation."""

    clock: StandingClock

    def _append(self, entry: dict[str, Any]) -> None:
        super()._append({"timestamp": self.clock.now().isoformat(), **entry})


@dataclass
class Played:
    """One pane and the agent in it."""

    name: str
    instance: str
    spool: Path
    pid: int
    clock: StandingClock
    reports: bool = True  #: it has hooks; without them nobody knows what it does
    dead: bool = False
    exit: LastExit | None = None
    receipts: dict[Receipt, str] = field(default_factory=dict)
    pasted: str = ""
    prompts: list[str] = field(default_factory=list)  #: that turns took
    numbers: Any = field(default_factory=itertools.count)
    turn: str = ""  #: the id of the turn that began last
    shown: str = ""  #: on its screen
    record: Conversation | None = None  #: in which it writes what its turns take

    def take(self, data: bytes, receipt: Receipt, token: str) -> Outcome:
        """Do what the agent does with what is typed."""
        if self.dead:
            return Outcome.DEAD
        self.receipts[receipt] = token
        if data == SUBMIT:
            prompt, self.pasted = self.pasted, ""
            if prompt:  # an Enter on an empty line does nothing
                self.begin(prompt)
        else:
            self.pasted = data.removeprefix(PASTE_START).removesuffix(PASTE_END).decode()
        return Outcome.DONE

    def begin(self, prompt: str) -> None:
        """Begin a turn with this prompt."""
        self.prompts.append(prompt)
        self.turn = f"turn-{len(self.prompts)}"
        if self.record is not None:
            self.record.user(prompt, "human", self.turn)
        self.report({"hook_event_name": "UserPromptSubmit", "prompt": prompt})

    def finish(self, at: datetime | None = None) -> None:
        """End the turn."""
        self.report({"hook_event_name": "Stop", "last_assistant_message": ""}, at)

    def fail(self, error: str, message: str = "") -> None:
        """End the turn with an error of the model's side."""
        self.report({"hook_event_name": "StopFailure", "error": error, "last_assistant_message": message})

    def read(self, source: str = "startup") -> None:
        """Tell that it reads."""
        self.report({"hook_event_name": "SessionStart", "source": source})

    def leave(self) -> None:
        """Be left by its person."""
        self.report({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"})
        self.dead, self.exit = True, LastExit(0, None)

    def report(self, payload: dict[str, Any], at: datetime | None = None) -> None:
        """Leave a report in the spool, written at that moment."""
        if not self.reports:
            return
        payload = {"prompt_id": self.turn, **payload} if self.turn else payload
        self.spool.mkdir(parents=True, exist_ok=True)
        moment = at or self.clock.now()
        stamp = int(moment.timestamp()) * 10**9 + moment.microsecond * 1000
        path = self.spool / f"{stamp}-{next(self.numbers):06}.json"
        path.with_suffix(".part").write_text(json.dumps(payload))
        os.rename(path.with_suffix(".part"), path)


class PlayedTmux:
    """The part of Runner that delivery and the watch over panes use."""

    def __init__(self, clock: StandingClock) -> None:
        self._clock = clock
        self.panes: dict[str, Played] = {}  #: by instance
        self.foreign: set[str] = set()  #: names whose target somebody else has taken
        self.silent = False
        self.writes = 0

    def survey(self) -> Survey:
        """See Runner."""
        if self.silent:
            raise TmuxSilent("tmux does not answer", "wait")
        panes = [self._pane(played) for played in self.panes.values()]
        panes += [Pane("%0", "$0", target_for(name), "", 1, False, None, False, False) for name in self.foreign]
        return Survey(tuple(panes), self._clock.now(), server=1)

    @staticmethod
    def _pane(played: Played) -> Pane:
        target = target_for(played.name)
        return Pane(
            "%1", "$1", target, played.instance, played.pid, played.dead, played.exit, False, False, played.receipts
        )

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Outcome:
        """See Runner."""
        if self.silent:
            raise TmuxSilent("tmux does not answer", "wait")
        self.writes += 1
        return self.panes[instance].take(data, receipt, token) if instance in self.panes else Outcome.ABSENT

    def recent(self, seconds: float) -> Survey | None:
        """See Runner."""
        return None

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Outcome | None, ...]:
        """See Runner."""
        return tuple(self._paste(paste) for paste in pastes)

    def _paste(self, paste: Paste) -> Outcome:
        done = self.write(paste.instance, paste.data, Receipt.PASTED, paste.token, paste.deadline)
        if paste.enter and done is Outcome.DONE:
            return self.write(paste.instance, SUBMIT, Receipt.SUBMITTED, paste.enter, paste.deadline)
        return done

    def typing(self, instance: str) -> tuple[Typing, ...]:
        """See Runner."""
        return ()

    def view(self, instance: str) -> View:
        """See Runner: what it shows, or the input line of the bundled agent."""
        return View(tuple(self.panes[instance].shown.splitlines()) or (">",))

    def screen(self, instance: str, lines: int) -> str:
        """See Runner: its input line, with what was pasted."""
        return f"\u276f {self.panes[instance].pasted}"

    def screens(self, instances: Collection[str], lines: int, within: float | None = None) -> Mapping[str, str]:
        """See Runner."""
        return {instance: self.panes[instance].shown for instance in instances if instance in self.panes}

    def attach_command(self, target: str, *, write: bool) -> tuple[str, ...]:
        """See Runner."""
        return ("tmux", "attach-session", "-t", target)

    def close(self) -> None:
        """See the adapter."""


@dataclass
class Simulation:
    """The system, its scheduler and its delivery, one step at a time."""

    system: System
    clock: StandingClock
    tmux: PlayedTmux
    scheduler: Scheduler
    deliverer: Deliverer

    def restarted(self) -> "Simulation":
        """Return the same after a restart of the service: nothing but files, database and panes is kept."""
        return _simulation(self.system, self.clock, self.tmux)

    def session(self, name: str = "scribe", **changes: Any) -> SessionRecord:
        """Record a running session, with a pane that reads and is idle, and return it."""
        told = {"harness_session_id": f"c-{name}", "started_at": self.clock.now(), **changes}
        record = a_record(name, status=Status.RUNNING, instance_id=f"i-{name}", **told)
        self.system.records.write(record)
        self.system.paths.session(record.uid).mkdir(parents=True, mode=0o700, exist_ok=True)
        self.pane(record).read()
        self.system.ingest(record.uid)
        return record

    def pane(self, record: SessionRecord, *, reports: bool = True) -> Played:
        """Give the record's instance a pane."""
        instance = record.instance_id or ""
        spool = self.system.paths.spool_of(instance)
        played = Played(record.name, instance, spool, 100_000 + len(self.tmux.panes), self.clock, reports)
        if record.harness_session_id is not None and reports:
            state = self.system.paths.session(record.uid) / "agent"
            played.record = Recorded(state, record.harness_session_id)
            played.record.clock = self.clock
        self.tmux.panes[instance] = played
        return played

    def respawned(self, record: SessionRecord, instance: str = "i-second") -> SessionRecord:
        """Start the session anew, a moment later: another pane, the same record."""
        self.clock.pause(1)
        del self.tmux.panes[record.instance_id or ""]
        latest = self.system.records.read(record.name) or record
        started = replace(latest, instance_id=instance, started_at=self.clock.now(), status=Status.RUNNING, hold=None)
        self.system.records.write(started)
        self.pane(started).read("resume")
        self.system.ingest(started.uid)
        return started

    def change(self, name: str = "scribe", **changes: Any) -> SessionRecord:
        """Change the record."""
        record = self.system.records.read(name)
        assert record is not None
        changed = replace(record, **changes)
        self.system.records.write(changed)
        return changed

    def loop(self, **changes: Any) -> Loop:
        """Store a loop of five minutes that is due in five."""
        now = self.clock.now()
        count = len(self.system.loops.all_open())
        values: dict[str, Any] = {
            "id": f"loop_{chr(97 + count) * 6}",
            "uid": "s-scribe",
            "name": "scribe",
            "instruction": "look at the build",
            "mode": Mode.INTERVAL,
            "created_by": "agent:scribe",
            "created_at": now,
            "interval": timedelta(minutes=5),
            "next_run_at": now + timedelta(minutes=5),
        }
        loop = Loop(**{**values, **changes})
        assert self.system.loops.add(loop, 0)
        return loop

    def dynamic(self, **changes: Any) -> Loop:
        """Store a loop whose agent sets the pace, due in five minutes."""
        return self.loop(mode=Mode.DYNAMIC, interval=None, **changes)

    def now(self, loop: Loop) -> Loop:
        """Return the loop as it is stored."""
        stored = self.system.loops.get(loop.id)
        assert stored is not None
        return stored

    # ------------------------------------------------------------ time

    def turn(self) -> None:
        """Let the scheduler look, whatever it would wait for, and every delivery take its steps."""
        self.scheduler.look_at_everything()
        self.scheduler.turn()
        self.deliver()
        self.scheduler.turn()

    def deliver(self) -> None:
        """Take every message as far as it goes without much time passing."""
        for uid in self.system.inbox.busy_uids():
            for _ in range(40):
                following = self.deliverer.advance(uid)
                if following is None or following > self.clock.now() + timedelta(seconds=2):
                    break
                self.clock.pause(max(0.0, (following - self.clock.now()).total_seconds()))

    def pass_time(self, step: float = 10.0, *, finish: Sequence[str] = (), **span: float) -> None:
        """Let time pass in steps of so many seconds, with a turn in each; `finish` names sessions whose turns end."""
        end = self.clock.now() + timedelta(**span)
        while self.clock.now() < end:
            self.clock.pause(min(step, max(0.001, (end - self.clock.now()).total_seconds())))
            for name in finish:
                self.finish(name)
            self.turn()

    def finish(self, name: str = "scribe") -> None:
        """End the session's turn and take its report in."""
        record = self.system.records.read(name)
        assert record is not None
        self.tmux.panes[record.instance_id or ""].finish()
        self.system.ingest(record.uid)

    def prompts(self, name: str = "scribe") -> list[str]:
        """Return what turns of the session's instance took."""
        record = self.system.records.read(name)
        assert record is not None
        return self.tmux.panes[record.instance_id or ""].prompts


def settings_of(root: Path, *, slack: bool = False) -> Settings:
    """Return a configuration whose sessions run the bundled agent."""
    return Settings(
        state_root=root,
        routing=Routing(default_harness="bundled", spawn_workdir=str(root)),
        channels={"slack": ChannelBlock("slack", slack, {"enabled": slack})},
    )


def simulated(root: Path, *, slack: bool = False, settings: Settings | None = None) -> Simulation:
    """Return a simulation that begins at noon."""
    clock = StandingClock()
    built = build_system(settings or settings_of(root, slack=slack), dict(os.environ), clock=clock)
    tmux = PlayedTmux(clock)
    return _simulation(replace(built, runner=cast(Runner, tmux)), clock, tmux)


def _simulation(system: System, clock: StandingClock, tmux: PlayedTmux) -> Simulation:
    from core.delivery.hook_ingest import ingest
    from core.lifecycle.exits import plan_for_keep_alive

    whole = replace(
        system,
        ingest=lambda uid: ingest(whole, uid),
        bring_back=lambda record: plan_for_keep_alive(whole, record),
    )
    return Simulation(whole, clock, tmux, Scheduler(whole), Deliverer(whole))
