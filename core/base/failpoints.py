"""Named points at which a test may kill the process: one for each change outside it.

Every such change stands in `with failpoint(Failpoint.X)`. With `THE_LOOP_CRASH_AT=start.spawn:after` in its environment
a process ends itself by SIGKILL directly after that change. Without the variable, a point costs one comparison. A test
goes through the whole list.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

CRASH_VARIABLE = "THE_LOOP_CRASH_AT"


class Failpoint(Enum):
    """One change outside this process. Each value says what is changed."""

    # start (and the second half of create and restart)
    START_MARK = "start.mark"  #: the record says starting, with the new instance
    START_FOLDER = "start.folder"  #: the session's folder and the instance's spool
    START_UNHOLD = "start.unhold"  #: the files `hold`, `asking` and `tool` go
    START_PREPARE = "start.prepare"  #: the harness's hook settings and trust
    START_LAUNCHER = "start.launcher"  #: the launcher, and the brief where it is too long for an argument
    START_BOOT = "start.boot"  #: the boot prompt as an inbox row, earlier ones void, activity starting
    START_SPAWN = "start.spawn"  #: the pane
    START_READY = "start.ready"  #: activity of a harness that cannot say by itself that it reads
    START_ANNOUNCE = "start.announce"  #: the announcement, committed to the outbox
    START_SETTLE = "start.settle"  #: the record is settled
    START_LOOPS = (
        "start.loops"  #: the loops that its entry declares, at its first start; the service's rounds see to them
    )

    # the end of an instance, whoever asked for it
    END_OUTPUT = "end.output"  #: the last of its screen, kept in the session's folder
    END_TREE = "end.tree"  #: its processes
    END_PANE = "end.pane"  #: its tmux session

    # stop (and the first half of restart)
    STOP_HOLD = "stop.hold"  #: the file `hold`, which blocks turns born inside the harness
    STOP_MARK = "stop.mark"  #: the record says stopping, with the hold where the stop was by name
    STOP_CANCEL = "stop.cancel"  #: the queue is cancelled, the loops are held
    STOP_ANNOUNCE = "stop.announce"  #: the root's edit, committed to the outbox
    STOP_SETTLE = "stop.settle"  #: the record is settled
    STOP_UNBLOCK = "stop.unblock"  #: the file `hold` goes, where the session was ended and is not held

    # pause, resume, interrupt, cancel
    PAUSE_HOLD = "pause.hold"  #: the file `hold`, which blocks turns that nobody types
    PAUSE_MARK = "pause.mark"  #: the record says paused
    RESUME_MARK = "resume.mark"  #: the record says so no more
    RESUME_UNBLOCK = "resume.unblock"  #: the file `hold` goes
    INTERRUPT_KEY = "interrupt.key"  #: the key in the pane, with its receipt
    TAKE_BACK_KEY = "take_back.key"  #: the key that empties the harness's own queue into its input line
    TAKE_BACK_CLEAR = "take_back.clear"  #: the input line is emptied of it
    DIALOG_KEY = "dialog.key"  #: a key of a dialog, for whoever chose it in a chat
    INTERRUPT_SETTLE = "interrupt.settle"  #: what the harness does now by its own word, and the marker of a dialog
    QUEUE_CANCEL = "queue.cancel"  #: one waiting message is cancelled, and its sender told

    # announce
    ANNOUNCE = "announce.commit"  #: the announcement, and the thread that is left where the channel has changed
    ANNOUNCE_RECORD = "announce.record"  #: the channel of the definition is taken over

    # an end that no verb asked for, and what follows from it; idleness
    WATCH_HOLD = "watch.hold"  #: the file `hold` of a session that stays down as failed
    WATCH_RECORD = "watch.record"  #: how it ended, and the mark of one that stays down as failed
    WATCH_TELL = "watch.tell"  #: the note, what is due, and that both are done
    WATCH_COUNT = "watch.count"  #: a restart is counted before it is tried
    WATCH_PUT_OFF = "watch.put_off"  #: a restart that could not be tried is due later, or not at all
    WATCH_ANNOUNCE = "watch.announce"  #: idleness is announced

    # create
    CREATE_MARK = "create.mark"  #: the record of a session that the configuration does not declare

    # a task that somebody wrote in a chat
    TASK_COMMIT = "task.commit"  #: the task is a row
    TASK_WORKTREE = "task.worktree"  #: git has made the worktree
    TASK_HAND_OVER = "task.hand_over"  #: the thread is bound, the task is a row of the inbox, the lifetime runs

    # delete, and a creation that failed
    DELETE_HOLD = "delete.hold"
    DELETE_MARK = "delete.mark"  #: the record says deleting
    DELETE_CANCEL = "delete.cancel"
    DELETE_UNBIND = "delete.unbind"  #: open posts dropped, closing note committed, thread unbound
    DELETE_FORGET = "delete.forget"  #: what it was doing
    DELETE_FILES = "delete.files"  #: its folder and spool
    DELETE_RECORD = "delete.record"  #: the record; the name is free

    # threads, after the database was lost
    REBIND = "rebind.commit"  #: the thread is bound again, a root that waits becomes an edit, the note is committed
    REBIND_REFUSE = "rebind.refuse"  #: the thread that the record names is the session's no more

    # a fleet: what goes through its exchange
    FLEET_SEND = "fleet.send"  #: the gateway commits calls to hosts
    FLEET_ACKNOWLEDGE = "fleet.acknowledge"  #: the host removes calls that it has committed
    FLEET_HAND_OVER = "fleet.hand_over"  #: the host hands a post to the gateway
    FLEET_POST = "fleet.post"  #: the gateway asks the chat for it
    FLEET_POSTED = "fleet.posted"  #: what became of it is kept for the host
    FLEET_FORGET = "fleet.forget"  #: the host removes what it has recorded

    # loops
    LOOP_CLAIM = "loop.claim"  #: due runs are claimed
    LOOP_SEND = "loop.send"  #: a claimed run's tick is a row of the inbox
    LOOP_GATE = "loop.gate"  #: a tick that waits is deferred, or is over, by the gate's word
    LOOP_SETTLE = "loop.settle"  #: what became of a tick counts for its loop
    LOOP_RELEASE = "loop.release"  #: what held a loop is over
    LOOP_EXPIRE = "loop.expire"  #: a loop that does not fire has grown too old, or was planned by another clock
    LOOP_PRUNE = "loop.prune"  #: what was over long ago goes

    # what is over for long
    KEEP_FORGET = "keep.forget"  #: rows that nothing needs any more go, a batch at a time
    KEEP_FILES = "keep.files"  #: files that no row speaks of go

    # a turn that is shown as it runs; all of these are calls of a chat
    LIVE_BEGIN = "live.begin"  #: its message
    LIVE_ADD = "live.add"  #: what has changed of its steps
    LIVE_STOP = "live.stop"  #: its message ends without an answer
    LIVE_WRITE = "live.write"  #: a piece of the answer that is not the last one
    LIVE_END = "live.end"  #: the last piece, and the end of the message
    LIVE_REMOVE = "live.remove"  #: a message that was cut off goes

    # delivery
    DELIVERY_CLAIM = "delivery.claim"
    DELIVERY_STASH = "delivery.stash"
    DELIVERY_CLEAR = "delivery.clear"
    DELIVERY_PASTE = "delivery.paste"
    DELIVERY_PASTED = "delivery.pasted"
    DELIVERY_SUBMIT = "delivery.submit"
    DELIVERY_SUBMITTED = "delivery.submitted"
    DELIVERY_SETTLE = "delivery.settle"


_crash_at = os.environ.get(CRASH_VARIABLE, "")
_current: ContextVar[Failpoint | None] = ContextVar("effect", default=None)


@contextmanager
def failpoint(name: Failpoint) -> Iterator[None]:
    """Mark a change: a crash point before it, and one after it if it was made."""
    _crash_point(name, "before")
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)
    _crash_point(name, "after")


def rearm() -> None:
    """Take the point from the environment again: in a process that was forked from one without the variable."""
    global _crash_at
    _crash_at = os.environ.get(CRASH_VARIABLE, "")


def current_failpoint() -> Failpoint | None:
    """Return the effect that is being made by this thread, or None."""
    return _current.get()


def _crash_point(name: Failpoint, when: str) -> None:
    if _crash_at and f"{name.value}:{when}" == _crash_at:
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
