"""Ends one instance: its harness gracefully, then every process that carries its marker, then its tmux session."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from core.clock import Deadline
from core.domain.pane import Pane
from core.domain.session import LastExit, SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError, NotRunning, StoreBroken, TmuxMissing, TmuxSilent
from core.session.launching import save_output
from core.sight.situations import modified, traits_of
from core.system import System

_LOG = logging.getLogger(__name__)

_OUTPUT_LINES = 2000
_EXIT_SECONDS = 1.0
_POLL_SECONDS = 0.02


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
        """Tell whether nothing of the instance is left, and that this is known."""
        return not self.silent and not self.survivors

    def trouble(self) -> str:
        """Return what is left undone, "" where all is well."""
        if self.survivors:
            pids = ", ".join(map(str, self.survivors))
            return f"processes that would not end: {pids}; end them by hand, then stop the session again"
        if self.silent:
            return f"its processes were ended by their marker, but {self.silent}"
        return self.unsaved


def end_recorded(system: System, record: SessionRecord) -> Ended:
    """End the record's instance as `end_instance` does, once its conversation is on the disk."""
    return end_instance(system, record.uid, record.instance_id, lambda: _await_flush(system, record))


def _await_flush(system: System, record: SessionRecord) -> None:
    """Wait out the adapter's `flush` since the harness's last report.

    A harness says that a turn is over a moment before it writes the turn down (Claude Code 2.1.197: about 0.1 s), and
    a SIGTERM in between loses it.
    """
    try:
        flush = traits_of(system, record).flush
        now = system.clock.now()
        reported = modified(system.paths.spool_of(record.instance_id or ""), now)  # each report is renamed into it
    except CoreError as error:
        _LOG.info("not known when it last reported", extra={"session": record.name, "reason": str(error)})
        return
    if reported is not None:
        left = flush - (system.clock.now() - reported).total_seconds()
        system.clock.pause(min(max(left, 0.0), flush))


def end_instance(
    system: System, uid: str | None, instance: str | None, before: Callable[[], None] = lambda: None
) -> Ended:
    """End the instance, dead or alive, and keep the last of its screen. Never raises for tmux's silence or a full disk.

    SIGTERM first, so that a harness writes down its conversation; SIGKILL after harnessKillGraceSeconds. `uid` None:
    nobody knows whose it is, and nothing of its screen is kept. `before` is done first where the harness lives and tmux
    answers.
    """
    if instance is None:
        return Ended()
    try:
        pane = system.runner.survey().of_instance(instance)
    except (TmuxSilent, TmuxMissing) as error:
        return _end_unseen(system, instance, str(error))
    was_live = pane is not None and not pane.dead
    if was_live:
        before()
    unsaved = keep_output(system, uid, pane) if pane and uid else ""
    grace = system.settings.routing.tmux.harness_kill_grace_seconds
    with effect(Effect.END_TREE):
        tree = system.processes.end_tree(instance, pane.pid if pane and not pane.dead else None, grace)
    try:
        seen = _exit_of(system, instance) if pane else None
        with effect(Effect.END_PANE):
            system.runner.end(instance)
    except (TmuxSilent, TmuxMissing) as error:
        return Ended(was_live, tree.exit, str(error), tree.survivors, unsaved)
    return Ended(was_live, seen or tree.exit, "", tree.survivors, unsaved)


def _end_unseen(system: System, instance: str, silent: str) -> Ended:
    was_live = bool(system.processes.marked(instance))
    with effect(Effect.END_TREE):
        tree = system.processes.end_tree(instance, None, system.settings.routing.tmux.harness_kill_grace_seconds)
    return Ended(was_live, tree.exit, silent, tree.survivors)


def keep_output(system: System, uid: str, pane: Pane) -> str:
    """Keep the last of the pane's screen in the session's folder, and return why that could not be, "" where it was."""
    try:
        text = system.runner.screen(pane.tag, _OUTPUT_LINES)
        with effect(Effect.END_OUTPUT):
            save_output(system.paths, uid, text)
    except NotRunning:
        return ""  # it is gone already, and its screen with it
    except (TmuxSilent, StoreBroken) as error:
        return f"its last output could not be kept: {error}"
    return ""


def _exit_of(system: System, instance: str) -> LastExit | None:
    """Return how the pane's program ended, as far as tmux has noticed it by now."""
    deadline = Deadline(system.clock, _EXIT_SECONDS)
    while True:
        pane = system.runner.survey().of_instance(instance)
        if pane is None:
            return None
        if pane.exit is not None or deadline.passed():
            return pane.exit
        system.clock.pause(_POLL_SECONDS)
