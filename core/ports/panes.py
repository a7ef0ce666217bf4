"""tmux and processes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from core.domain.pane import Pane, Paste, Receipt, Spawn, Survey, Typing, View, Written
from core.domain.session import LastExit
from core.values import dataclass


class Runner(Protocol):
    """Drives tmux. Every call has a deadline and raises TmuxSilent where tmux did not answer: never "absent"."""

    def survey(self, within: float | None = None) -> Survey:
        """Return all panes of the server in one call, `within` so many seconds at most; no server at all is an empty
        survey.
        """
        ...

    def spawn(self, spawn: Spawn) -> Pane:
        """Make a session of one pane, tagged in the same command line, and return the pane.

        Raises SpawnFailed with tmux's words, TmuxSilent if it may or may not have been made.
        """
        ...

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Written:
        """Paste bytes into the pane that carries the tag, guarded in the server, and leave the receipt on the pane."""
        ...

    def recent(self, seconds: float) -> Survey | None:
        """Return the latest survey of this process if it is no older: tmux answered then. What is pasted by it is
        guarded by it (`Paste.seen`).
        """
        ...

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        """Paste messages into the panes that carry their tags, in one piece, each guarded by itself in the server.

        None where it is not known what became of one: the receipt tells, once its deadline has passed.
        """
        ...

    def typing(self, instance: str) -> tuple[Typing, ...]:
        """Return the writable clients attached to the instance's session."""
        ...

    def end(self, *instances: str) -> frozenset[str]:
        """Kill the tmux sessions whose panes carry these tags, dead or alive; return the tags that were there."""
        ...

    def clear(self, target: str) -> bool:
        """Kill the tmux session of that name if no program runs in it, whoever made it; False if one does."""
        ...

    def screen(self, instance: str, lines: int) -> str:
        """Return the last lines of the pane's screen and history as text. Raises NotRunning."""
        ...

    def screens(self, instances: Collection[str], lines: int, within: float | None = None) -> Mapping[str, str]:
        """Return the same of several, by instance; without those that are not there, or not told `within` that time."""
        ...

    def view(self, instance: str) -> View:
        """Return what the pane's screen shows now, without history. Raises NotRunning if no pane carries the tag."""
        ...

    def redraw(self, instance: str) -> None:
        """Let the pane's program draw its screen anew, by a change of its height by a row. No key is written.

        Raises NotRunning if no pane carries the tag.
        """
        ...

    def press(
        self, instance: str, key: bytes, token: str, deadline: datetime, *, view: View, rows: Sequence[int]
    ) -> Written:
        """Write a key if the screen still shows these rows as the view does, and its cursor is where it was there.

        The server checks it in the turn in which it writes.
        """
        ...

    def attach_command(self, target: str, *, write: bool) -> tuple[str, ...]:
        """Return the command by which a person attaches, read-only unless `write`."""
        ...

    def kill_command(self, target: str) -> tuple[str, ...]:
        """Return the command by which a person ends that tmux session."""
        ...


@dataclass(frozen=True)
class EndedTree:
    """What ending a harness came to: whether there was one, its exit as far as it was seen, how many of its processes
    were killed hard, what would not go.
    """

    lived: bool
    exit: LastExit | None
    killed: int
    survivors: tuple[int, ...]


class Processes(Protocol):
    """The processes of an instance, found by the marker that they carry and by descent from the pane's."""

    def alive(self, pid: int) -> bool:
        """Tell whether the process lives (a zombie does not)."""
        ...

    def marked(self, instance: str) -> tuple[int, ...]:
        """Return the pids of those that carry the instance's marker, ourselves excepted."""
        ...

    def end_trees(self, panes: Mapping[str, int | None], grace: float) -> Mapping[str, EndedTree]:
        """End the processes of these instances, all together: SIGTERM to each harness, SIGKILL to those that live after
        `grace` seconds, then a sweep of what carries the markers. Return what each came to.

        `panes`: each instance with its pane's first process, as far as tmux has told.
        """
        ...

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended` once from a watcher thread when the process ends; the answer stops watching."""
        ...

    def watches(self) -> int:
        """Return how many watches are held: until they are stopped or their process has ended, each by itself."""
        ...
