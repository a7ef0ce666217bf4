"""Why something is as it is, and what a person can do about it, as codes. No I/O.

Every decision (delivery, a button, a count, a query) uses a code and its arguments. The sentence that a person reads is
made from them in `core.model.texts` and is compared nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from core.base.values import dataclass, field


class Reason(StrEnum):
    """Why something is as it is. A code is stored in databases and is never renamed; its text may change."""

    SAID = "said"  #: somebody else's words, an error or an earlier release's sentence: {words}
    NEWER = "newer"  #: a newer release's code, shown as it is: {code}, {given}

    # the mark on a session
    DELETING = "deleting"
    STOPPED = "stopped"
    FAILED = "failed"
    PAUSED = "paused"  #: {ahead}: messages that wait before this one

    # what is observed of a session
    NEVER_RUN = "never-run"
    DOWN = "down"
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    PERMISSION = "permission"
    QUESTION = "question"
    DIALOG = "dialog"
    UNKNOWN = "unknown"
    DEAD = "dead"
    LOST = "lost"
    SILENT = "silent"  #: tmux does not answer
    FOREIGN = "foreign"

    # what a message waits for
    TYPING = "typing"
    HALF_TYPED = "half-typed"
    STASHING = "stashing"
    CLEARING = "clearing"
    TOOL_CALL = "tool-call"
    FETCHING = "fetching"
    NEEDS_SERVICE = "needs-service"
    NO_INPUT_LINE = "no-input-line"
    IN_MODE = "in-mode"  #: {mode}
    IN_DOUBT = "in-doubt"
    CONFIRM = "confirm"  #: {late}: "sent 3 h ago"
    CONFIRM_ALL = "confirm-all"  #: several of them
    CONFIRMED_BY = "confirmed-by"  #: {actor}
    INPUT_CLOSED = "input-closed"
    OLD_CONFIGURATION = "old-configuration"  #: {since}, {error}
    SETTLING = "settling"
    RETURNING = "returning"
    STASH_RETURNING = "stash-returning"
    PASTE_PENDING = "paste-pending"

    HARNESS_HAS_IT = "harness-has-it"

    # why a harness's own queue keeps what it holds
    DIALOG_OPEN = "dialog-open"
    NO_KEY = "no-key"
    UNTOLD = "untold"
    KEY_NOT_WRITTEN = "key-not-written"  #: {written}

    # why a message is tried again
    PANE_ENDED = "pane-ended"
    TAKEN_BACK = "taken-back"
    HARNESS_ENDED = "harness-ended"
    HELD_BACK = "held-back"

    # why a message went no further
    OUTLIVED = "outlived"
    DELETED = "deleted"
    NOT_AUTHORIZED = "not-authorized"
    WAITED_TOO_LONG = "waited-too-long"  #: {why}
    QUEUE_FULL = "queue-full"  #: {limit}
    QUEUE_CANCELLED = "queue-cancelled"  #: {name}
    CANCELLED_BY = "cancelled-by"  #: {actor}
    AUTHOR_DELETED = "author-deleted"
    MADE_ASIDE = "made-aside"
    NEW_BOOT = "new-boot"

    # what became of a message that was typed
    ARGUMENT = "argument"
    UNPROVEN = "unproven"
    AS_PASTED = "as-pasted"
    ANSWERED = "answered"
    NOT_SHOWN = "not-shown"  #: {why}: what keeps us from a further Enter
    BY_ARGUMENT = "by-argument"
    SECOND_ENTER = "second-enter"
    NO_ENTER = "no-enter"  #: {why}
    STASHED_FOR_IT = "stashed-for-it"
    TYPED_SINCE = "typed-since"
    PANE_ENDED_UNSHOWN = "pane-ended-unshown"
    NOT_TAKEN = "not-taken"
    NO_RECORD = "no-record"
    RECORD_UNREAD = "record-unread"  #: {error}
    NEVER_TOLD = "never-told"  #: {days}
    AT_TERMINAL = "at-terminal"
    LINE_EMPTIED = "line-emptied"
    BLOCKED = "blocked"  #: {why}: in the words of a hook that is not ours
    CUT_OFF_BY = "cut-off-by"  #: {what}: of the turn that took it
    NOT_LOOKED_AT = "not-looked-at"  #: {log}
    UNDER_WAY = "under-way"
    NOT_SHOWN_YET = "not-shown-yet"

    # the answer to a message: where it can be read, or why there is none
    ANSWER_AT = "answer-at"  #: {chat}, {link}
    ANSWER_IN_THREAD = "answer-in-thread"  #: {chat}, {channel}
    ANSWER_ON_SCREEN = "answer-on-screen"  #: {name}
    ANSWERS_UNRECORDED = "answers-unrecorded"  #: {harness}
    ENDED_UNANSWERED = "ended-unanswered"
    NO_ANSWER_WITHIN = "no-answer-within"  #: {seconds}, {why}
    MESSAGE_GONE = "message-gone"

    # why nothing is shown, or told, in a thread
    ASKER_UNPROVEN = "asker-unproven"
    ASKED_OTHERWISE = "asked-otherwise"
    EARLIER_INSTANCE = "earlier-instance"
    BEING_STOPPED = "being-stopped"
    HELD = "held"

    # connections
    NOT_CONNECTED_YET = "not-connected-yet"
    DEAF = "deaf"

    # notices of background tasks
    TOLD_BY_ITSELF = "told-by-itself"
    REPEATED = "repeated"
    LEFT_OVER = "left-over"
    RECORDED = "recorded"
    TOO_MANY_WAIT = "too-many-wait"  #: {waiting}, {limit}

    # ticks of loops
    RUN_OVER = "run-over"
    OVERTAKEN = "overtaken"
    LOOP_IS = "loop-is"  #: {status}
    LOOP_HELD = "loop-held"  #: {held}
    LOOP_STOPPED = "loop-stopped"
    LOOP_COMPLETED = "loop-completed"
    LOOP_EXPIRED = "loop-expired"
    LOOP_PAUSED = "loop-paused"
    LOOP_ENDED = "loop-ended"  #: {why}
    LEFT_BY_PERSON = "left-by-person"

    # what became of a post, or what it waits for
    LATER_START = "later-start"
    LATER_EDIT = "later-edit"
    OVER_BEFORE = "over-before"
    LEFT_OUT = "left-out"
    IN_PARTS = "in-parts"  #: {count}
    MAYBE_SHOWN = "maybe-shown"
    HANDED_OVER = "handed-over"  #: {why}: somebody else posts it, and has not said yet that it is posted
    NO_THREAD = "no-thread"
    GIVEN_UP = "given-up"  #: {attempts}, {error}
    THREAD_LOOKED_FOR = "thread-looked-for"
    THREAD_UNKNOWN = "thread-unknown"  #: {error}

    # why a session does what it does, and what else is known of it
    QUEUE_LEFT = "queue-left"  #: busy since a turn left messages in its own queue
    BETWEEN_TURNS = "between-turns"  #: busy for its background tasks alone
    ENDING = "ending"  #: busy since the end of its turn was reported, and another source shows it at work
    AT_WORK = "at-work"  #: busy by another source's word alone
    CUT_OFF = "cut-off"  #: its turn ended without its harness's word
    END_UNKNOWN = "end-unknown"  #: its turn has ended, and nothing tells how
    DIALOG_AT_START = "dialog-at-start"  #: {title}
    DIALOG_SHOWN = "dialog-shown"  #: {title}
    DIALOG_UNREAD = "dialog-unread"  #: the title of a dialog that nobody can read
    HARNESS_SILENT = "harness-silent"
    GOING_AWAY = "going-away"  #: {why}: in the harness's words
    STALLED = "stalled"  #: {since}
    TURN_FAILED = "turn-failed"  #: {why}, {remedy}
    STOPS_IDLE = "stops-idle"  #: {at}: of the day
    RETRIES = "retries"  #: {what}, {attempt}, {most}
    SERVER_ANSWERS = "server-answers"  #: {status}, {words}
    SERVER_UNASKED = "server-unasked"  #: {words}
    SERVER_ERROR = "server-error"

    # why a session's hooks are silent
    HOOKS_OFF = "hooks-off"  #: {words}: the harness's own, of its settings
    FOLDER_GONE = "folder-gone"  #: {folder}
    REPORTER_GONE = "reporter-gone"  #: {path}, {name}
    HOOKS_FAIL = "hooks-fail"  #: {trouble}, {name}
    START_UNTOLD = "start-untold"  #: {name}
    READING_UNTOLD = "reading-untold"  #: {seconds}, {name}
    END_UNTOLD = "end-untold"  #: {name}
    PLUGIN_GONE = "plugin-gone"  #: {path}, {name}
    PLUGIN_SILENT = "plugin-silent"  #: {name}


#: why a session is silent that a restart mends
RESTARTABLE = frozenset({Reason.REPORTER_GONE, Reason.PLUGIN_GONE})
#: why the plugin is silent that reports in the place of hooks
OF_PLUGIN = frozenset({Reason.PLUGIN_GONE, Reason.PLUGIN_SILENT})


class Remedy(StrEnum):
    """What a person can do. Not stored: the sentence is made where it is told."""

    CREATE_ANEW = "create-anew"  #: {name}
    LOOK_AT_FOREIGN = "look-at-foreign"  #: {name}
    START = "start"  #: {name}
    START_SERVICE = "start-service"
    GOES_IN_RESUMED = "goes-in-resumed"  #: {name}
    GOES_IN_STARTED = "goes-in-started"  #: {name}
    GOES_IN_READING = "goes-in-reading"
    GOES_IN_AFTER_TURN = "goes-in-after-turn"
    GOES_IN_AFTER_PAUSE = "goes-in-after-pause"
    ALLOW_OR_DENY = "allow-or-deny"  #: {name}
    ANSWER = "answer"  #: {name}
    ANSWER_BY_BUTTONS = "answer-by-buttons"  #: {name}
    ANSWER_IN_TERMINAL = "answer-in-terminal"  #: {name}
    ANSWER_WHERE_SHOWN = "answer-where-shown"  #: {name}
    TRIED_AGAIN = "tried-again"
    SEND_AGAIN = "send-again"
    WRITE_OTHERWISE = "write-otherwise"
    SEND_AGAIN_RUNNING = "send-again-running"
    SEND_AGAIN_IF_COUNTS = "send-again-if-counts"
    SEND_AGAIN_THEN = "send-again-then"
    TYPIST_SENDS = "typist-sends"
    LEFT_TEXT = "left-text"
    LOOK_IN_DOUBT = "look-in-doubt"
    LOOK_FIRST = "look-first"
    SENT_THERE = "sent-there"
    BACK_TO_INPUT = "back-to-input"  #: {name}
    LEAVE_MODE = "leave-mode"  #: {name}
    CONFIRM = "confirm"  #: {message}
    LISTED = "listed"  #: {name}
    AFTER_FAILURE = "after-failure"  #: {remedy}


@dataclass(frozen=True)
class Because:
    """A reason with its arguments. It is compared as a whole, or by its code."""

    reason: Reason
    args: Mapping[str, str | int | Because] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence, without its end. Arguments that do not fit it, by another release, are shown as they are."""
        from core.model.texts import Misfit, text

        try:
            return text(self.reason, **self.args)
        except Misfit:
            return shown(self.reason, self.given)

    @property
    def given(self) -> str:
        """The arguments as JSON, in the order of their names; `{}` for none."""
        if self.reason is Reason.NEWER:
            return str(self.args["given"])
        return json.dumps(_plain(self.args), ensure_ascii=False, sort_keys=True) if self.args else "{}"

    @property
    def code(self) -> str:
        """The code as it is stored."""
        return str(self.args["code"]) if self.reason is Reason.NEWER else self.reason.value


def because(reason: Reason, **args: str | int | Because) -> Because:
    """Return the reason with these arguments. Raises Misfit if its text does not have exactly these."""
    from core.model.texts import check

    check(reason, args)
    return Because(reason, args)


def said(words: str) -> Because:
    """Return as a reason what somebody else said, or an error."""
    return Because(Reason.SAID, {"words": words})


def stored(code: str, given: str) -> Because | None:
    """Return the reason of two columns, None for the empty code. Raises ValueError for arguments that are no object.

    A code that this release does not know stays what it is, and is stored again unchanged.
    """
    if not code:
        return None
    args = json.loads(given)
    if not isinstance(args, dict):
        raise ValueError(f"{given!r} are no arguments")
    return _made(code, args, given)


def text_of(why: Because | None) -> str:
    """Return the sentence, "" without a reason."""
    return why.text if why is not None else ""


def code_of(why: Because | None) -> str:
    """Return the code, "" without a reason."""
    return why.code if why is not None else ""


def shown(code: str, given: str) -> str:
    """Return what a reason is shown as that has no text."""
    return f"{code} {given}" if given != "{}" else code


def _plain(args: Mapping[str, str | int | Because]) -> dict[str, Any]:
    return {
        name: {"reason": value.code, "args": json.loads(value.given)} if isinstance(value, Because) else value
        for name, value in args.items()
    }


def _made(code: str, args: dict[str, Any], given: str) -> Because:
    try:
        reason = Reason(code)
    except ValueError:
        return Because(Reason.NEWER, {"code": code, "given": given})
    return Because(reason, {name: _value(value) for name, value in args.items()})


def _value(value: Any) -> str | int | Because:
    if isinstance(value, dict) and isinstance(value.get("args"), dict) and isinstance(value.get("reason"), str):
        return _made(value["reason"], value["args"], json.dumps(value["args"], ensure_ascii=False, sort_keys=True))
    return value if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)
