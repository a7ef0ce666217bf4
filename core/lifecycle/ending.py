"""End instances: all harnesses gracefully, then each process that carries a marker, then the tmux sessions."""

import logging
from collections.abc import Collection, Mapping, Sequence

from core.base.clock import Clock, Deadline
from core.base.errors import CoreError, NotRunning, StoreBroken, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.paths import StatePaths
from core.base.values import dataclass
from core.delivery.snapshot import modified
from core.lifecycle.common import Tmux
from core.model.pane import Pane, Survey
from core.model.session import LastExit, SessionRecord
from core.session.folder import save_output
from core.session.sessions import apart, traits_of
from core.session.system import System
from core.tmux.runner import Runner

_LOG = logging.getLogger(__name__)

END_SECONDS = 15.0  #: what an end takes at most beside harnessKillGraceSeconds, where tmux answers
_OUTPUT_LINES = 2000
_OUTPUT_SECONDS = 1.0  #: in which screens are kept before processes are signalled: what a program restores hides them
_EXIT_SECONDS = 1.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Doomed:
    """An instance that is to be ended, and whose it is; None: nobody knows, and nothing of its screen is kept."""

    instance: str
    record: SessionRecord | None = None


@dataclass(frozen=True)
class Ended:
    """What ending an instance came to. `was_live`: a harness of ours ran when it was asked for."""

    was_live: bool = False
    exit: LastExit | None = None
    silent: str = ""  #: why tmux could not be asked; then only the processes were ended
    survivors: tuple[int, ...] = ()
    unsaved: str = ""  #: why the last output could not be kept

    @property
    def complete(self) -> bool:
        """Return whether nothing of the instance is left, and that this is known."""
        return not self.silent and not self.survivors

    def trouble(self) -> str:
        """Return what is left undone, "" where all is well."""
        if self.survivors:
            pids = ", ".join(map(str, self.survivors))
            return f"processes that would not end: {pids}; end them by hand, then stop the session again"
        if self.silent:
            return f"its processes were found by their process markers and ended; {self.silent}"
        return self.unsaved


def end_recorded(system: System, record: SessionRecord, tmux: Tmux | None = None) -> Ended:
    """End the record's instance as `end_all` does, if it ever had one."""
    if record.instance_id is None:
        return Ended()
    once = tmux or Tmux(system.runner)
    return end_all(system, [Doomed(record.instance_id, record)], once, once.glimpse())[record.instance_id]


def end_all(system: System, doomed: Sequence[Doomed], tmux: Tmux, seen: Survey | None) -> Mapping[str, Ended]:
    """End these instances, dead or alive, all together, and return what that came to, by instance.

    What tmux shows of them within a moment is kept. SIGTERM then goes out, whether or not tmux has answered, so that
    the harnesses write down their conversations; SIGKILL after harnessKillGraceSeconds. `seen`: what a look has just
    shown, None where tmux did not answer in a moment. Never raises for tmux's silence or a full disk.
    """
    if not doomed:
        return {}
    panes = None if seen is None else {pane.tag: pane for pane in seen.panes}
    _await_flush(system, [one.record for one in doomed if one.record and _may_live(one.instance, panes)])
    outputs = _Outputs(
        system.paths, system.runner, {one.instance: one.record.uid for one in doomed if one.record is not None}
    )
    if panes is not None:
        outputs.keep(panes, _OUTPUT_SECONDS)
    pids = {one.instance: _pid_of(one.instance, panes) for one in doomed}
    with failpoint(Failpoint.END_TREE):
        trees = system.processes.end_trees(pids, system.settings.routing.tmux.harness_kill_grace_seconds)
    silent, exits = "", dict[str, LastExit | None]()
    try:
        left = _when_noticed(system.clock, pids, tmux)
        exits = {pane.tag: pane.exit for pane in left.values()}
        outputs.keep(left)
        with failpoint(Failpoint.END_PANE):
            system.runner.end(*pids)
    except (TmuxSilent, TmuxMissing) as error:
        tmux.silence = error
        silent = str(error)
    return {
        instance: Ended(
            tree.lived if panes is None else pids[instance] is not None,
            exits.get(instance) or tree.exit,
            silent,
            tree.survivors,
            outputs.unsaved.get(instance, ""),
        )
        for instance, tree in trees.items()
    }


def _may_live(instance: str, panes: Mapping[str, Pane] | None) -> bool:
    return panes is None or _pid_of(instance, panes) is not None


def _pid_of(instance: str, panes: Mapping[str, Pane] | None) -> int | None:
    """Return the process of the instance's pane, None where none lives or nothing is known of it."""
    pane = panes.get(instance) if panes else None
    return None if pane is None or pane.dead else pane.pid


def _await_flush(system: System, records: Sequence[SessionRecord]) -> None:
    """Wait out the longest `flush` of an adapter since its harness's last report.

    A harness says that a turn is over a moment before it writes the turn down (Claude Code 2.1.197: about 0.1 s), and
    a SIGTERM in between loses it.
    """
    left = max((_flush_left(system, record) for record in records), default=0.0)
    if left > 0:
        system.clock.pause(left)


def _flush_left(system: System, record: SessionRecord) -> float:
    try:
        with apart(system.events, record.name):
            flush = traits_of(system.settings, system.harnesses, record).flush
            now = system.clock.now()
            reported = modified(system.paths.spool_of(record.instance_id or ""), now)  # each report is renamed into it
    except CoreError as error:
        _LOG.info("not known when it last reported", extra={"session": record.name, "reason": str(error)})
        return 0.0
    return 0.0 if reported is None else min(flush - (system.clock.now() - reported).total_seconds(), flush)


class _Outputs:
    """Keeps the last of each pane's screen in its session's folder, once."""

    def __init__(self, paths: StatePaths, runner: Runner, uids: Mapping[str, str]) -> None:
        """`uids`: whose the instances are."""
        self._paths = paths
        self._runner = runner
        self._left = dict(uids)
        self.unsaved: dict[str, str] = {}  #: why the output of an instance could not be kept

    def keep(self, panes: Mapping[str, Pane], within: float | None = None) -> None:
        """Keep those of these panes that are not kept yet, as far as tmux shows them `within` that time.

        Raises TmuxSilent where it has the time that a call of tmux usually has.
        """
        wanted = [instance for instance in panes if instance in self._left]
        if not wanted:
            return
        try:
            shown = self._runner.screens(wanted, _OUTPUT_LINES, within)
        except TmuxSilent:
            if within is None:
                raise
            return
        for instance, text in shown.items():
            trouble = _saved(self._paths, self._left.pop(instance), text)
            if trouble:
                self.unsaved[instance] = trouble


def _saved(paths: StatePaths, uid: str, text: str) -> str:
    """Keep the text, and return why that could not be, "" where it was."""
    try:
        with failpoint(Failpoint.END_OUTPUT):
            save_output(paths, uid, text)
    except StoreBroken as error:
        return f"its last output could not be kept: {error}"
    return ""


def _when_noticed(clock: Clock, instances: Collection[str], tmux: Tmux) -> Mapping[str, Pane]:
    """Return the panes that are left of these instances, once tmux has noticed how their programs ended.

    It gets a second for that. Raises TmuxSilent, TmuxMissing.
    """
    deadline = Deadline(clock, _EXIT_SECONDS)
    while True:
        left = {pane.tag: pane for pane in tmux.survey().panes if pane.tag in instances}
        if deadline.passed() or all(pane.exit is not None for pane in left.values()):
            return left
        clock.pause(_POLL_SECONDS)


def keep_output(paths: StatePaths, runner: Runner, uid: str, pane: Pane) -> str:
    """Keep the last of the pane's screen in the session's folder, and return why that could not be, "" where it was."""
    try:
        text = runner.screen(pane.tag, _OUTPUT_LINES)
    except NotRunning:
        return ""  # it is gone already, and its screen with it
    except TmuxSilent as error:
        return f"its last output could not be kept: {error}"
    return _saved(paths, uid, text)
