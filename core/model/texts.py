"""What a person reads for a code: one text for each, made here and compared nowhere. No I/O.

A text is a sentence without its full stop, with the names of its arguments in braces, or a function of them where one
is optional. An argument that is itself a reason is shown by its own text.
"""

import re
from collections.abc import Callable, Mapping

from core.model.reasons import Because, Reason, Remedy, shown

Text = str | Callable[..., str]
Arguments = Mapping[str, str | int | Because]
_ARGUMENT = re.compile(r"{(\w+)}")


class Misfit(TypeError):
    """The arguments are not those that the text has."""


def text(code: Reason | Remedy, /, **args: str | int | Because) -> str:
    """Return the text of the code with these arguments. Raises Misfit unless they are exactly those that it has."""
    check(code, args)
    found = _text(code)
    given = {name: value.text if isinstance(value, Because) else value for name, value in args.items()}
    return found.format(**given) if isinstance(found, str) else found(**given)


def check(code: Reason | Remedy, args: Arguments) -> None:
    """Raise Misfit unless the arguments are exactly those of the code's text."""
    names = arguments(code)
    if args.keys() != names:
        missing, unknown = sorted(names - args.keys()), sorted(args.keys() - names)
        raise Misfit(f"{type(code).__name__} {code.value}: {missing=} {unknown=}")


def arguments(code: Reason | Remedy) -> frozenset[str]:
    """Return the names of the arguments of the code's text."""
    found = _text(code)
    if isinstance(found, str):
        return frozenset(_ARGUMENT.findall(found))
    made = found.__code__
    return frozenset(made.co_varnames[: made.co_argcount])


def _text(code: Reason | Remedy) -> Text:
    return REASONS[code] if isinstance(code, Reason) else REMEDIES[code]


def _paused(ahead: int) -> str:
    if not ahead:
        return "the session is paused"
    return f"the session is paused; {ahead} {'message is' if ahead == 1 else 'messages are'} ahead"


def _answers(status: str, words: str) -> str:
    return f"the model's server answers {status} ({words})" if words else f"the model's server answers {status}"


_LOOK = "look at the session's terminal, `the-loop standing attach {name} --write`"
_LISTED = "there, `/hooks` lists the hooks"

R = Reason
REASONS: Mapping[Reason, Text] = {
    R.SAID: "{words}",
    R.NEWER: shown,
    # the hold of a session
    R.DELETING: "the session is being deleted",
    R.STOPPED: "the session was stopped",
    R.FAILED: "the session is held as failed: it crashed too often, or could not be restarted",
    R.PAUSED: _paused,
    # what is observed of a session
    R.NEVER_RUN: "the session was never started",
    R.DOWN: "the session is not running",
    R.STARTING: "the session is still starting",
    R.IDLE: "the session is idle",
    R.BUSY: "a turn is running",
    R.PERMISSION: "the agent asks for a permission, and text that is typed now could answer it",
    R.QUESTION: "the agent waits for the answer to its question",
    R.DIALOG: "the program shows a dialog, and text that is typed now would answer it",
    R.UNKNOWN: "it is not known what the session is doing",
    R.DEAD: "the session's program has ended",
    R.LOST: "the session's pane is gone",
    R.SILENT: "tmux does not answer",
    R.FOREIGN: "a tmux session has this name, and the-loop did not make it",
    # what a message waits for
    R.TYPING: "somebody is typing in the session's terminal",
    R.HALF_TYPED: "somebody has half-typed text in the session's terminal",
    R.STASHING: "half-typed text is being put aside",
    R.CLEARING: "the input line is being emptied",
    R.TOOL_CALL: "a tool call may open a dialog",
    R.FETCHING: "its files are being downloaded",
    R.NEEDS_SERVICE: "only the service can ask whether its author may still steer",
    R.NO_INPUT_LINE: "the session's terminal shows something else in place of the input line",
    R.IN_MODE: "the input line is in {mode}",
    R.IN_DOUBT: "the message before it is possibly still in the input line",
    R.CONFIRM: "it needs confirmation, because it was {late}",
    R.CONFIRM_ALL: "they arrived late and need confirmation",
    R.CONFIRMED_BY: "confirmed by {actor}",
    R.INPUT_CLOSED: "the input of the session's pane is switched off",
    R.OLD_CONFIGURATION: "the service still uses the configuration of {since} UTC: {error};"
    " `the-loop restart` applies the current file",
    R.SETTLING: "the harness needs a moment",
    R.RETURNING: "a text may come back into the input line",
    R.STASH_RETURNING: "a text that was put aside comes back into the input line",
    R.PASTE_PENDING: "it may still be pasted",
    R.HARNESS_HAS_IT: "the harness has it, possibly in its own queue, and no turn is known to have taken it",
    # why a harness's own queue keeps what it holds
    R.DIALOG_OPEN: "a dialog is open in the session's terminal",
    R.NO_KEY: "the harness has no key that takes its queue back",
    R.UNTOLD: "the harness's records do not show that it gave its queued messages back",
    R.KEY_NOT_WRITTEN: "tmux did not write the key: {written}",
    # why a message is tried again
    R.PANE_ENDED: "the session's pane ended, and the conversation does not contain the message",
    R.TAKEN_BACK: "it was taken back from the harness's own queue",
    R.HARNESS_ENDED: "the harness ended while the message was in its queue",
    R.HELD_BACK: "it was held back in the harness's own queue",
    # why a message went no further
    R.OUTLIVED: "the session was stopped or deleted after the message was sent",
    R.DELETED: "the session was deleted",
    R.NOT_AUTHORIZED: "its author is no longer on the allow-list",
    R.WAITED_TOO_LONG: "it waited too long: {why}",
    R.QUEUE_FULL: "the session's queue is full (limits.queuedPerSession is {limit}); it takes no reply from this thread"
    " until the waiting messages are delivered",
    R.QUEUE_CANCELLED: "the session was stopped; start it: `the-loop standing start {name}`",
    R.CANCELLED_BY: "cancelled by {actor}",
    R.AUTHOR_DELETED: "its author deleted it",
    R.MADE_ASIDE: "its author made it a note to colleagues",
    R.NEW_BOOT: "a later start gave a new boot prompt",
    # what became of a message that was typed
    R.ARGUMENT: "given to the program as its argument",
    R.UNPROVEN: "this harness cannot prove more",
    R.AS_PASTED: "the model got it marked as pasted text, and possibly does not treat it as the sender's own words",
    R.ANSWERED: "it answered the session's question",
    R.NOT_SHOWN: "nothing shows that a turn took it, and {why}",
    R.BY_ARGUMENT: "it was given to the program as its argument",
    R.SECOND_ENTER: "a second Enter changed nothing",
    R.NO_ENTER: "no second Enter was sent, because {why}",
    R.STASHED_FOR_IT: "somebody's half-typed text was put aside to make room for the message",
    R.TYPED_SINCE: "somebody typed after it",
    R.PANE_ENDED_UNSHOWN: "the session's pane ended before anything showed that a turn took it",
    R.NO_RECORD: "the harness received it, and keeps no record that would show whether a turn took it",
    R.RECORD_UNREAD: "the harness received it, and whether a turn took it cannot be seen: {error}",
    R.NEVER_TOLD: "the harness received it more than {days} days ago, and nothing has shown since that a turn took it",
    R.NOT_TAKEN: "the harness received it and is idle now, but its records do not show that a turn took it",
    R.AT_TERMINAL: "it was taken back from the harness's own queue into the input line of the terminal",
    R.LINE_EMPTIED: "it was taken back from the harness's own queue into the input line of the terminal, which has been"
    " emptied since",
    R.BLOCKED: "a hook of the program blocked it: {why}",
    R.CUT_OFF_BY: "its turn was cut off by {what}",
    R.NOT_LOOKED_AT: "the service has not processed it yet; `the-loop status` and the service's log may tell why"
    " ({log}, or the journal of its unit)",
    R.UNDER_WAY: "its delivery is under way",
    R.NOT_SHOWN_YET: "nothing has shown yet that a turn took it",
    # the answer to a message
    R.ANSWER_AT: "the answer comes in its {chat} thread: {link}",
    R.ANSWER_IN_THREAD: "the answer comes in its {chat} thread, in the channel {channel}",
    R.ANSWER_ON_SCREEN: "the answer comes in its terminal: `the-loop standing screen {name}`;"
    " with `--wait-answer`, `say` prints it",
    R.ANSWERS_UNRECORDED: "{harness} keeps no record from which its answers can be read",
    R.ENDED_UNANSWERED: "the session's program ended before the turn was over",
    R.NO_ANSWER_WITHIN: "none came within {seconds} s: {why}",
    R.MESSAGE_GONE: "the message is no longer in the database",
    # why nothing is shown, or told, in a thread
    R.ASKER_UNPROVEN: "the request did not prove that it comes from the session's current instance",
    R.ASKED_OTHERWISE: "it differs from the earlier request with the same key",
    R.EARLIER_INSTANCE: "it comes from an earlier instance",
    R.BEING_STOPPED: "the session is being stopped",
    R.HELD: "the session is held",
    # connections
    R.NOT_CONNECTED_YET: "not connected yet",
    R.DEAF: "deaf: it is connected, but no event has come since {since}, not even those of our own posts: replies are "
    "lost; see whether the app subscribes to message events and its bot is in the channels, then restart the service",
    # notices of background tasks
    R.TOLD_BY_ITSELF: "the harness reported it by itself",
    R.REPEATED: "the harness repeats a notice that was already delivered",
    R.LEFT_OVER: "on resume the harness reported a task that ended with an earlier instance",
    R.RECORDED: "recorded only: the harness will report the task again when its conversation is resumed",
    R.TOO_MANY_WAIT: "{waiting} messages already wait, and limits.queuedPerSession is {limit}",
    # ticks of loops
    R.RUN_OVER: "its run has ended",
    R.OVERTAKEN: "the session was stopped after the run was due",
    R.LOOP_IS: "its loop is {status}",
    R.LOOP_HELD: "its loop is blocked: {held}",
    R.LOOP_STOPPED: "its loop was stopped",
    R.LOOP_COMPLETED: "its loop is complete",
    R.LOOP_EXPIRED: "its loop has expired",
    R.LOOP_PAUSED: "its loop was paused",
    R.LOOP_ENDED: "its loop has ended: {why}",
    R.LEFT_BY_PERSON: "a person left the program (such as by `/exit`), or the program ended by itself",
    # what became of a post, or what it waits for
    R.LATER_START: "a later start says the same",
    R.LATER_EDIT: "a later edit contains it",
    R.OVER_BEFORE: "its subject had ended before it was posted",
    R.LEFT_OUT: "the channel's verbosity leaves it out",
    R.IN_PARTS: "{count} parts",
    R.MAYBE_SHOWN: "it may have been shown; this cannot be checked",
    R.HANDED_OVER: "{why}",
    R.NO_THREAD: "there is no thread for it, or no message to edit",
    R.GIVEN_UP: "given up after {attempts} attempts: {error}",
    R.THREAD_LOOKED_FOR: "the-loop is looking for its earlier thread",
    R.THREAD_UNKNOWN: "it is not known which thread belongs to the session: {error}",
    # why a session does what it does, and what else is known of it
    R.QUEUE_LEFT: "the messages in the harness's own queue are next",
    R.BETWEEN_TURNS: "no turn is running, but background tasks are",
    R.ENDING: "the end of its turn was reported, but another source shows that it still works",
    R.AT_WORK: "another source shows that it works, but the beginning of a turn was not reported",
    R.CUT_OFF: "the turn was cut off in the terminal",
    R.END_UNKNOWN: "the turn is over, but no source tells how it ended",
    R.DIALOG_AT_START: "it shows a dialog before it is ready for input: {title}",
    R.DIALOG_SHOWN: "it shows a dialog: {title}",
    R.DIALOG_UNREAD: "its screen is not understood: look at its terminal",
    R.HARNESS_SILENT: "the harness was silent for a long time",
    R.GOING_AWAY: "it is shutting down: {why}",
    R.STALLED: "no sign of life since {since} UTC, although it says that it is busy",
    R.TURN_FAILED: "the last turn failed: {why}; {remedy}",
    R.STOPS_IDLE: "idle: it will be stopped at {at} UTC, unless a message comes before that",
    R.RETRIES: "{what}; the program tries again by itself, attempt {attempt} of {most}",
    R.SERVER_ANSWERS: _answers,
    R.SERVER_UNASKED: "the model's server cannot be reached ({words})",
    R.SERVER_ERROR: "the model's server answers with an error",
    # why a session's hooks are silent
    R.HOOKS_OFF: "{words}",
    R.FOLDER_GONE: "the session's folder {folder} is gone, so no hook can start there: make the folder again",
    R.REPORTER_GONE: "its hooks run {path}, which does not exist: `the-loop standing restart {name}` writes it again",
    R.HOOKS_FAIL: f"its hooks cannot run ({{trouble}}): {_LOOK}",
    R.START_UNTOLD: f"the program runs, but its hooks have not reported it: {_LOOK}; {_LISTED}",
    R.READING_UNTOLD: "its hooks have not reported that it is ready for input, and within {seconds} s no other source"
    f" has shown it: {_LOOK}; {_LISTED}",
    R.END_UNTOLD: f"its hooks did not report the end of a turn: {_LOOK}; {_LISTED}",
    R.PLUGIN_GONE: "its plugin {path} does not exist: `the-loop standing restart {name}` writes it again",
    R.PLUGIN_SILENT: f"its plugin does not report: {_LOOK}",
}

_IN_TERMINAL = "in the terminal: `the-loop standing attach {name} --write`"
_AFTERWARDS = "what waits goes in afterwards"

M = Remedy
REMEDIES: Mapping[Remedy, Text] = {
    M.CREATE_ANEW: "create it again after the deletion is complete: `the-loop standing create {name}`",
    M.LOOK_AT_FOREIGN: "`the-loop standing start {name}` names that tmux session, and says how to look at it or end it",
    M.START: "start it: `the-loop standing start {name}`",
    M.START_SERVICE: "`the-loop start`",
    M.GOES_IN_RESUMED: "resume the session: `the-loop standing resume {name}`",
    M.GOES_IN_STARTED: "what waits goes in when the session runs again: `the-loop standing start {name}`",
    M.GOES_IN_READING: "wait until the agent is ready for input",
    M.GOES_IN_AFTER_TURN: "wait until the turn is over",
    M.GOES_IN_AFTER_PAUSE: "wait until nobody has typed for five seconds",
    M.ALLOW_OR_DENY: f"allow or deny it in the session's thread, or {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER: f"answer it in its thread, or {_IN_TERMINAL}",
    M.ANSWER_BY_BUTTONS: f"answer it by its buttons in the session's thread, or {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER_IN_TERMINAL: f"answer it {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER_WHERE_SHOWN: f"answer it {_IN_TERMINAL}; {_AFTERWARDS}."
    " If the thread shows the dialog, its buttons work too",
    M.TRIED_AGAIN: "the-loop tries again until it expires; look at `the-loop standing list`",
    M.SEND_AGAIN: "send it again",
    M.WRITE_OTHERWISE: "write it in another way, or change that hook",
    M.SEND_AGAIN_RUNNING: "send it again when the session runs",
    M.SEND_AGAIN_IF_COUNTS: "send it again if you still want it",
    M.SEND_AGAIN_THEN: "send it again after that",
    M.TYPIST_SENDS: "what waits goes in when that text is sent, or when whoever typed it removes it and detaches"
    " from the terminal",
    M.LEFT_TEXT: "send that text in the session's terminal, or remove it there; then what waits goes in",
    M.LOOK_IN_DOUBT: "look at the session's terminal; what waits goes in when the next turn has begun",
    M.LOOK_FIRST: "look at the session's terminal before you send it again",
    M.SENT_THERE: "press Enter there to send it, or send it again from here",
    M.BACK_TO_INPUT: "go back to the input line there: `the-loop standing attach {name} --write`",
    M.LEAVE_MODE: "empty that line and leave the mode there: `the-loop standing attach {name} --write`",
    M.CONFIRM: "`the-loop standing confirm {message}` sends it; `the-loop standing cancel {message}` discards it",
    M.LISTED: "`the-loop standing queue {name}` lists them",
    M.AFTER_FAILURE: "{remedy}; then send it again",
}
