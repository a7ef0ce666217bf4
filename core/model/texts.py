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
    return f"it is paused, {ahead} ahead" if ahead else "it is paused"


def _answers(status: str, words: str) -> str:
    return f"the model's server answers {status} ({words})" if words else f"the model's server answers {status}"


_LOOK = "look at its terminal, `the-loop standing attach {name} --write`"
_LISTED = "`/hooks` lists them there"

R = Reason
REASONS: Mapping[Reason, Text] = {
    R.SAID: "{words}",
    R.NEWER: shown,
    # the mark on a session
    R.DELETING: "it is being deleted",
    R.STOPPED: "it was stopped",
    R.FAILED: "it crashed too often, or could not be brought back, and is held as failed",
    R.PAUSED: _paused,
    # what is observed of a session
    R.NEVER_RUN: "it was never started",
    R.DOWN: "it is not running",
    R.STARTING: "it is still starting",
    R.IDLE: "it is idle",
    R.BUSY: "a turn is running",
    R.PERMISSION: "its agent asks for a permission, and what is typed now could answer that",
    R.QUESTION: "it waits for the answer to its question",
    R.DIALOG: "its program shows a dialog, and what is typed now would answer that",
    R.UNKNOWN: "nobody can tell what it does",
    R.DEAD: "its program has ended",
    R.LOST: "its pane is gone",
    R.SILENT: "tmux does not answer",
    R.FOREIGN: "a tmux session of that name, which is not ours, is in its place",
    # what a message waits for
    R.TYPING: "somebody is typing in its terminal",
    R.HALF_TYPED: "somebody has half-typed text in its terminal",
    R.STASHING: "half-typed text is being put aside",
    R.CLEARING: "its input line is being emptied",
    R.TOOL_CALL: "a tool call may open a dialog",
    R.FETCHING: "its files are being fetched",
    R.NEEDS_SERVICE: "only the service can ask whether its author may still steer",
    R.NO_INPUT_LINE: "its terminal shows something in the place of its input line",
    R.IN_MODE: "its input line is in {mode}",
    R.IN_DOUBT: "the message before it may still stand in its input line",
    R.CONFIRM: "it waits to be confirmed, for it was {late}",
    R.CONFIRM_ALL: "they came late, and wait for somebody's word",
    R.CONFIRMED_BY: "confirmed by {actor}",
    R.INPUT_CLOSED: "its pane's input is switched off",
    R.OLD_CONFIGURATION: "the service runs with the configuration of {since} UTC, and {error};"
    " `the-loop restart` takes the file's over",
    R.SETTLING: "the harness needs a moment",
    R.RETURNING: "a text may come back into its input line",
    R.STASH_RETURNING: "a text that was put aside comes back into its input line",
    R.PASTE_PENDING: "its paste may still happen",
    # why a harness's own queue keeps what it holds
    R.DIALOG_OPEN: "a dialog is open in its terminal",
    R.NO_KEY: "no key is known that does it",
    R.UNTOLD: "its records do not show that it gave them back",
    R.KEY_NOT_WRITTEN: "tmux did not write the key: {written}",
    # why a message is tried again
    R.PANE_ENDED: "its pane ended, and the conversation does not know it",
    R.TAKEN_BACK: "it was taken back from its harness's own queue",
    R.HARNESS_ENDED: "its harness ended with the text in its queue",
    R.HELD_BACK: "it was held back in the harness's own queue",
    # why a message went no further
    R.OUTLIVED: "the session was stopped or deleted after it was sent",
    R.DELETED: "the session was deleted",
    R.NOT_AUTHORIZED: "its author is no longer on the allow-list",
    R.WAITED_TOO_LONG: "it waited too long: {why}",
    R.QUEUE_FULL: "its queue is full (limits.queuedPerSession is {limit})"
    " and takes more from here once what waits has gone in",
    R.QUEUE_CANCELLED: "the session was stopped; start it: `the-loop standing start {name}`",
    R.CANCELLED_BY: "cancelled by {actor}",
    R.AUTHOR_DELETED: "its author deleted it",
    R.NEW_BOOT: "a fresh start gave a new one",
    # what became of a message that was typed
    R.ARGUMENT: "given to the program as its argument",
    R.UNPROVEN: "this harness cannot prove more",
    R.AS_PASTED: "its model got it marked as pasted from somewhere else,"
    " and may not take it for its sender's own words",
    R.ANSWERED: "it answered the session's question",
    R.NOT_SHOWN: "nothing shows that a turn took it, and {why}",
    R.BY_ARGUMENT: "it was the program's argument",
    R.SECOND_ENTER: "a second Enter changed nothing",
    R.NO_ENTER: "no second Enter was sent, for {why}",
    R.STASHED_FOR_IT: "half-typed text was put aside for it",
    R.TYPED_SINCE: "somebody typed since",
    R.PANE_ENDED_UNSHOWN: "its pane ended before anything showed that a turn took it",
    R.NOT_TAKEN: "its harness had received it and is idle, and its records do not show that a turn took it",
    R.AT_TERMINAL: "it was taken back from its harness's own queue into the input line of its terminal",
    R.BLOCKED: "a hook of its program's has blocked it, and no turn took it: {why}",
    R.CUT_OFF_BY: "its turn was cut off by {what}",
    R.NOT_LOOKED_AT: "nobody has looked at it yet; `the-loop status` and the service's log may tell why"
    " ({log}, or the journal of its unit)",
    R.UNDER_WAY: "its delivery is under way",
    R.NOT_SHOWN_YET: "nothing has shown yet that a turn took it",
    # why nothing is shown, or told, in a thread
    R.ASKER_UNPROVEN: "whoever asked did not prove to be the present run of the session",
    R.ASKED_OTHERWISE: "it differs from the request that came before it under the same key",
    R.EARLIER_INSTANCE: "it comes from an earlier instance",
    R.BEING_STOPPED: "the session is being stopped",
    R.HELD: "the session is held",
    # connections
    R.NOT_CONNECTED_YET: "not connected yet",
    # notices of background tasks
    R.TOLD_BY_ITSELF: "the harness told it by itself",
    R.REPEATED: "the harness repeats a notice that was delivered before",
    R.LEFT_OVER: "the harness tells at its resume of a task that ended with an earlier run",
    R.RECORDED: "recorded: the harness brings it again when it is resumed",
    R.TOO_MANY_WAIT: "{waiting} messages wait already, and limits.queuedPerSession is {limit}",
    # ticks of loops
    R.RUN_OVER: "its run is over",
    R.OVERTAKEN: "the session was stopped after it was due",
    R.LOOP_IS: "its loop is {status}",
    R.LOOP_HELD: "its loop is held: {held}",
    R.LOOP_STOPPED: "its loop was stopped",
    R.LOOP_COMPLETED: "its loop is complete",
    R.LOOP_EXPIRED: "its loop has expired",
    R.LOOP_PAUSED: "its loop was paused",
    R.LOOP_ENDED: "its loop has ended: {why}",
    R.LEFT_BY_PERSON: "it was left, or ended by itself",
    # what became of a post, or what it waits for
    R.LATER_START: "a later start says the same",
    R.LATER_EDIT: "a later edit says all that it says",
    R.OVER_BEFORE: "what it tells of was over before it was posted",
    R.LEFT_OUT: "the channel's verbosity leaves it out",
    R.IN_PARTS: "{count} parts",
    R.MAYBE_SHOWN: "it may have been shown; nobody can look",
    R.NO_THREAD: "there is no thread for it, or no message to edit",
    R.GIVEN_UP: "given up after {attempts} attempts: {error}",
    R.THREAD_LOOKED_FOR: "its earlier thread is looked for",
    R.THREAD_UNKNOWN: "it cannot be told which thread is its own: {error}",
    # why a session does what it does, and what else is known of it
    R.QUEUE_LEFT: "what its own queue held comes next",
    R.BETWEEN_TURNS: "background tasks run, and no turn does",
    R.ENDING: "its hooks say that its turn is over, and its program's own status that it works",
    R.AT_WORK: "its program's own status says that it works, and no hook has told of a turn",
    R.CUT_OFF: "its turn was cut off in the terminal",
    R.END_UNKNOWN: "its turn is over, and nothing tells how it ended",
    R.DIALOG_AT_START: "it shows a dialog before it reads: {title}",
    R.DIALOG_SHOWN: "it shows a dialog: {title}",
    R.DIALOG_UNREAD: "what it shows is not understood: look at its terminal",
    R.HARNESS_SILENT: "its harness was silent for long",
    R.GOING_AWAY: "it is going away: {why}",
    R.STALLED: "no sign of life since {since} UTC, and it says that it is busy",
    R.TURN_FAILED: "its last turn failed: {why}; {remedy}",
    R.STOPS_IDLE: "idle: it will be stopped at {at} UTC; any message keeps it",
    R.RETRIES: "{what}; its program tries again by itself, attempt {attempt} of {most}",
    R.SERVER_ANSWERS: _answers,
    R.SERVER_UNASKED: "the model's server cannot be asked ({words})",
    R.SERVER_ERROR: "the model's server answers with an error",
    # why a session's hooks are silent
    R.HOOKS_OFF: "{words}",
    R.FOLDER_GONE: "its folder {folder} is gone, and no hook can start there: make the folder again",
    R.REPORTER_GONE: "{path}, which its hooks run, is not there: `the-loop standing restart {name}` writes it again",
    R.HOOKS_FAIL: f"its hooks cannot run ({{trouble}}): {_LOOK}",
    R.START_UNTOLD: f"its program runs, and its hooks have not said so: {_LOOK}; {_LISTED}",
    R.READING_UNTOLD: "its hooks have not said that it reads, and no other source tells within {seconds} s:"
    f" {_LOOK}; {_LISTED}",
    R.END_UNTOLD: f"its hooks told nothing of the end of a turn: {_LOOK}; {_LISTED}",
}

_IN_TERMINAL = "in the terminal: `the-loop standing attach {name} --write`"
_AFTERWARDS = "the message goes in afterwards"

M = Remedy
REMEDIES: Mapping[Remedy, Text] = {
    M.CREATE_ANEW: "make it anew once it is gone: `the-loop standing create {name}`",
    M.LOOK_AT_FOREIGN: "`the-loop standing start {name}` names the session and how to look at it or end it",
    M.START: "start it: `the-loop standing start {name}`",
    M.START_SERVICE: "`the-loop start`",
    M.GOES_IN_RESUMED: "it goes in when the session is resumed: `the-loop standing resume {name}`",
    M.GOES_IN_STARTED: "it goes in once the session runs again: `the-loop standing start {name}`",
    M.GOES_IN_READING: "it goes in once the agent reads",
    M.GOES_IN_AFTER_TURN: "it goes in when the turn is over",
    M.GOES_IN_AFTER_PAUSE: "it goes in after a pause in the typing",
    M.ALLOW_OR_DENY: f"allow or deny it in the session's thread, or {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER: f"answer it in its thread, or {_IN_TERMINAL}",
    M.ANSWER_BY_BUTTONS: f"answer it by its buttons in the session's thread, or {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER_IN_TERMINAL: f"answer it {_IN_TERMINAL}; {_AFTERWARDS}",
    M.ANSWER_WHERE_SHOWN: f"answer it {_IN_TERMINAL}; {_AFTERWARDS}."
    " Where the thread shows it, its buttons answer it, too",
    M.TRIED_AGAIN: "it is tried again until it expires; look at `the-loop standing list`",
    M.SEND_AGAIN: "send it again",
    M.WRITE_OTHERWISE: "write it in another way, or see to that hook",
    M.SEND_AGAIN_RUNNING: "send it again once it runs",
    M.SEND_AGAIN_IF_COUNTS: "send it again if it still counts",
    M.SEND_AGAIN_THEN: "send it again then",
    M.TYPIST_SENDS: "it goes in once that text was sent, or was removed and that client has detached",
    M.LEFT_TEXT: "send that text at its terminal, or remove it there; then it goes in",
    M.LOOK_IN_DOUBT: "look at its terminal; it goes in after the next turn began",
    M.LOOK_FIRST: "look at its terminal before you send it again",
    M.SENT_THERE: "it goes in when it is sent there; else send it again",
    M.BACK_TO_INPUT: "go back to its input line there: `the-loop standing attach {name} --write`",
    M.LEAVE_MODE: "empty that line and leave the mode there: `the-loop standing attach {name} --write`",
    M.CONFIRM: "`the-loop standing confirm {message}` sends it, `cancel` in its place forgets it",
    M.LISTED: "`the-loop standing queue {name}` lists them",
    M.AFTER_FAILURE: "{remedy}; then send it again",
}
