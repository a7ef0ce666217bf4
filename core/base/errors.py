"""The errors of the product. Each has a stable code, a message (the thing and the reason) and a remedy.

Every surface maps these by class. `ValueError` is bad input (exit 2), `LookupError` is an unknown name (exit 1),
`Refused` is a request that the present state does not allow (exit 1).
"""

from collections.abc import Iterable
from typing import ClassVar


class CoreError(Exception):
    """Base of every error that the product raises on purpose."""

    code: ClassVar[str] = "core_error"

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}; {remedy}" if remedy else message)


class InvalidValue(CoreError, ValueError):
    """A value that somebody gave is not allowed: a bad name, an empty text, an impossible number.

    `allowed`: what may be given, where that can be said in a few words; it makes the remedy.
    """

    code = "invalid_value"

    def __init__(self, message: str, remedy: str = "", *, allowed: str = "") -> None:
        super().__init__(message, f"give {allowed}" if allowed else remedy)
        self.allowed = allowed


class NoFolder(InvalidValue):
    """A path is named from the folder that this process works in, which was removed or cannot be looked at."""

    code = "no_folder"

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path}: the folder that this was started in is not there any more, or cannot be read",
            "change into another folder, or give an absolute path",
        )


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known words that look like the word, the most similar first."""
    from difflib import get_close_matches  # here, since a command that is well needs none of it

    return get_close_matches(word, list(known), most)


class UnknownSession(CoreError, LookupError):
    """The name is neither declared in the configuration nor recorded."""

    code = "unknown_session"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        """`known`: the names that there are, as far as whoever asks may know them."""
        near = nearest(name, known)
        super().__init__(
            f"no standing session is called {name!r}: it is neither declared nor recorded"
            + (f"; did you mean {' or '.join(near)}?" if near else ""),
            f"look at `the-loop standing list`, or make it with `the-loop standing create {name}`",
        )


class UnknownMessage(CoreError, LookupError):
    """No message has that id."""

    code = "unknown_message"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"no message has the id {message_id!r}", "look at the ids that `the-loop standing queue NAME` lists"
        )


class UnknownLoop(CoreError, LookupError):
    """No loop has that id, as far as the asker may know."""

    code = "unknown_loop"

    def __init__(self, loop_id: str) -> None:
        super().__init__(f"no loop has the id {loop_id[:40]!r}", "look at the ids that `the-loop loop list` shows")


class UnknownRequest(CoreError, LookupError):
    """No request has that id, as far as whoever asks may know."""

    code = "unknown_request"

    def __init__(self, request_id: str) -> None:
        super().__init__(f"no request has the id {request_id[:40]!r}", "look at the open ones again")


class Refused(CoreError):
    """The request is well formed, but the state of the session does not allow it."""

    code = "refused"


class NotRunning(Refused, LookupError):
    """A message was meant for a session that does not run; a message never starts one."""

    code = "not_running"


class BeingDeleted(NotRunning):
    """The session is being deleted: nothing is to begin in it any more."""

    code = "being_deleted"

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, f"`the-loop standing delete {name}` finishes that, or says what it waits for")


class NameTaken(Refused, ValueError):
    """`create` was given a name that is declared or recorded already."""

    code = "name_taken"


class DeclaredSession(Refused, ValueError):
    """`delete` was asked for a session that the configuration declares: the next start would recreate it."""

    code = "declared_session"


class NotPermitted(Refused):
    """The actor may not use this verb: an agent never starts, stops, creates or deletes."""

    code = "not_permitted"


class OtherSession(NotPermitted, LookupError):
    """An agent asked for the loops of a session that is not its own."""

    code = "other_session"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"an agent has only the loops of its own session, and {name[:40]!r} is another session", "leave NAME out"
        )


class TmuxSilent(CoreError):
    """tmux did not answer in time, or could not be asked. This says nothing about what lives."""

    code = "tmux_silent"


class TmuxMissing(CoreError):
    """There is no tmux program on PATH, or it is too old to be used."""

    code = "tmux_missing"


class SpawnFailed(CoreError):
    """tmux answered, and no pane was made."""

    code = "spawn_failed"


class ProcessesUnknown(CoreError):
    """This process cannot look at the machine's processes now: which of them live is not known."""

    code = "processes_unknown"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the machine's processes cannot be looked at: {reason}",
            "raise the limit on open files (`ulimit -n`), or free some memory, then try again",
        )


class ForeignPane(Refused):
    """A tmux session with the name that we would use lives, and it does not carry our tag."""

    code = "foreign_pane"


class HarnessNotInstalled(CoreError):
    """The harness's executable is not on PATH."""

    code = "harness_not_installed"

    def __init__(self, harness: str, executable: str) -> None:
        super().__init__(
            f"{harness}: {executable!r} is not on PATH",
            "install it, then try again",
        )


class UnsupportedHarness(CoreError):
    """The harness cannot be used for a standing session, and the message says why."""

    code = "unsupported_harness"


class TrustFailed(CoreError):
    """The harness's own settings could not be prepared; its first dialog would swallow the first message."""

    code = "trust_failed"


class RecordUnreadable(Refused):
    """A record file is there and cannot be understood; it is never touched, and its name stays taken."""

    code = "record_unreadable"

    def __init__(self, name: str, path: str, reason: str) -> None:
        self.name, self.path, self.reason = name, path, reason
        super().__init__(
            f"the record of {name!r} cannot be read: {path}: {reason}",
            "repair the file, or move it away by hand once its session is stopped",
        )


class StoreBroken(CoreError):
    """The database or the state folder cannot be used (damaged, full, no permission)."""

    code = "store_broken"


class StoreGone(StoreBroken):
    """The database's file is not the one any more that was worked with: nothing more can be kept in it."""

    code = "store_gone"

    def __init__(self, path: object, what: str) -> None:
        if str(path).endswith("-shm"):
            super().__init__(
                f"{path}: the index of the database's log {what}",
                "`the-loop start` makes it again once no process has the database open; nothing that was kept is lost",
            )
            return
        super().__init__(
            f"{path}: the database {what}",
            "put it back while nothing runs, if you have it; else `the-loop start` begins a new one: what waited in "
            "the old one is lost, and each thread is told",
        )


class RowBroken(StoreBroken):
    """One row of the database cannot be understood; the message names table, row and value."""

    code = "row_broken"


class LockBusy(CoreError):
    """Another process holds the session's lock, and did not let go before the deadline."""

    code = "lock_busy"


class ChannelError(CoreError):
    """A channel could not do what was asked.

    `transient` tells whether the same call may succeed later; `retry_after` is in seconds, where the other side said;
    `unclear` means that the call may have been carried out although no answer came; `reason` is one of the codes below,
    or "" where none fits.
    """

    CHANNEL_GONE: ClassVar[str] = "channel_gone"  #: no such channel, or archived
    NOT_MEMBER: ClassVar[str] = "not_member"  #: the bot was removed from the channel
    THREAD_GONE: ClassVar[str] = "thread_gone"  #: the message that the thread hangs on is gone, or locked
    SHUT_OUT: ClassVar[str] = "shut_out"  #: nothing is taken from us: the token does not count, or no more
    NOT_ALLOWED: ClassVar[str] = "not_allowed"  #: the installation lacks the right, or the method

    code = "channel_error"

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        transient: bool,
        retry_after: float | None = None,
        unclear: bool = False,
        reason: str = "",
    ) -> None:
        super().__init__(message, remedy)
        self.reason = reason
        self.transient = transient
        self.retry_after = retry_after
        self.unclear = unclear


class HandedOver(ChannelError):
    """Somebody else is to carry the call out, and has not said yet what became of it. The same call again asks for it.

    It was not carried out as far as is known, and it will not be carried out twice.
    """

    code = "handed_over"

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True, retry_after=1.0, unclear=True)
