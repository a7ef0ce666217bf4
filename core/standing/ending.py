"""Ends one instance: its harness gracefully, then every process that carries its marker, then its tmux session."""

from dataclasses import dataclass

from core.clock import Deadline
from core.domain.pane import Pane
from core.domain.session import LastExit
from core.effects import Effect, effect
from core.errors import NotRunning, StoreBroken, TmuxMissing, TmuxSilent
from core.launching import save_output
from core.system import System

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


def end_instance(system: System, uid: str | None, instance: str | None) -> Ended:
    """End the instance, dead or alive, and keep the last of its screen. Never raises for tmux's silence or a full disk.

    SIGTERM first, so that a harness writes down its conversation; SIGKILL after harnessKillGraceSeconds. `uid` None:
    nobody knows whose it is, and nothing of its screen is kept.
    """
    if instance is None:
        return Ended()
    try:
        pane = system.runner.survey().of_instance(instance)
    except (TmuxSilent, TmuxMissing) as error:
        return _end_unseen(system, instance, str(error))
    unsaved = _keep_output(system, uid, pane) if pane and uid else ""
    grace = system.settings.routing.tmux.harness_kill_grace_seconds
    with effect(Effect.END_TREE):
        tree = system.processes.end_tree(instance, pane.pid if pane and not pane.dead else None, grace)
    was_live = pane is not None and not pane.dead
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


def _keep_output(system: System, uid: str, pane: Pane) -> str:
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
