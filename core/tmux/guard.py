"""Command lines that check inside the tmux server, in the turn in which they act, whether they may still act. Pure.

Commands of one line run back to back in one turn of the server, so what the guard saw is what the rest acts on. That
matters because tmux 3.3a exits, with every session, on a paste into a pane whose program has ended. A line that was
sent to a stopped server runs when the server continues, so each has a deadline. The clock is a format that tmux expands
at that moment, in whole seconds: a deadline within a second counts as the beginning of that second.
"""

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from core.base.environment import MARKER, limit_of
from core.base.names import TARGET_PREFIX
from core.model.pane import Frame, Pane, Paste, Receipt, Spawn, View, Window
from core.tmux.transport import DATA, Command, Line, literal_format, silent, spell

#: How the command line begins that each pane of ours is started with; the instance follows, and a blank. tmux notes it
#: as it makes the pane, and anew for whatever is started in the pane's place: so it is the pane's tag.
OURS = f"/usr/bin/env {MARKER}="
REFUSED = "@the_loop_refused"  #: token of the latest write that the guard refused
ANSWER = "the-loop:"  #: begins the words by which a guarded line tells what it did

_NOW, _BEFORE = "@the_loop_now", "@the_loop_before"  #: rows of a pane, while one line compares them
_SAMPLE = 200  #: bytes of a buffer that a format has (paste_make_sample in tmux's paste.c), escapes among them
_LINE_END = len(r"\n")

DONE, DEAD, ALIVE, CLOSED, LATE, ABSENT = "done", "dead", "alive", "closed", "late", "absent"
CHANGED = "changed"

_CLOCK = "#{T;l:%s}"  #: the server's time in whole seconds: the literal `%s`, expanded as a time (tmux 3.2 and later)
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_PANE_ID = re.compile(r"%[0-9]+")
_WINDOW = "#{window_id} #{window_width} #{window_height} #{history_size} #{history_limit} #{alternate_on}"
_WINDOW_TOLD = r"(@\d+) (\d+) (\d+) (\d+) (\d+) ([01])"
_SESSION_ID = re.compile(r"\$[0-9]+")
_LIVING = "#{W:#{P:#{?pane_dead,,x}}}"  #: expands to nothing where every pane of every window is dead
_COLUMNS, _ROWS = "200", "50"  # tmux's own default of 80x24 makes full-screen programs wrap and cut their text
_ENTER = b"\r"
_STYLE = re.compile(r"\x1b\[([0-9;:]*)m")
_STYLED = r"(\x1b\[[0-9;:]*m|\x1b\]8;[^\x1b\a]*(?:\x1b\\|\a)|[\x0e\x0f])"  #: a style, a link, a set of letters
_PLACE = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}"
#: Every control sequence that can stand in a captured screen, links (OSC 8) among them, and every control character.
_CONTROLS = r"\x1b\[[0-9;:?]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\x00-\x09\x0b-\x1f\x7f-\x9f]"
_KEPT_CONTROL = re.compile(r"\x1b\[[0-9;:]*m|[\x0e\x0f]")  #: styles, and the shifts to line drawing and back
_KEPT = ("TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", MARKER)
_KEEP = " ".join(f'${{{name}+"{name}=${name}"}}' for name in _KEPT)
#: Marks the process, and leaves behind all that the server gave it but what tells a program that it is in a pane. The
#: limit's letter is `x` in bash and ksh, `w` in dash and busybox; a system without that limit refuses both.
_RUN_CLEAN = (
    f'{{ ulimit -S -x "$1" || ulimit -S -w "$1"; }} 2>/dev/null; shift; exec /usr/bin/env -i {_KEEP} /bin/sh -c "$@"'
)
_SHORTER = "@the_loop_shorter"  #: its window was made a row shorter, so that its program draws anew
#: Does what is in a buffer of the server's: what stands there stands on no command line, and in no file.
_TAKE = (
    'eval "$("$1" -S "${TMUX%,*,*}" show-buffer -b "$2" ";" delete-buffer -b "$2")"; '
    'echo "the-loop: tmux did not hand over what this pane is to run" >&2; exit 1'
)


def write_line(
    pane_id: str,
    instance: str,
    buffer: str,
    receipt: Receipt,
    token: str,
    deadline: datetime,
    *,
    keep_controls: bool,
    seen: tuple[View, Sequence[int]] | None = None,
) -> Line:
    """Return the line that loads the data, pastes it into the pane as it is, and leaves the receipt.

    `keep_controls`: tmux 3.7 and later rewrite control characters of a paste unless they are told not to. `seen`: what
    the pane showed, and the rows of it that must still stand there, letter by letter, and the cursor where it was.
    """
    _checked(_PANE_ID, pane_id)
    before, as_seen, after = _look_again(pane_id, *seen) if seen else ([], None, [])
    for word in (instance, buffer, token):
        _checked(_SAFE, word)
    paste = ["paste-buffer", "-d", "-r", *(["-S"] if keep_controls else []), "-b", buffer, "-t", pane_id]
    act = [paste, _receipt(pane_id, receipt.value, token), _tell(DONE)]
    refuse = [
        ["delete-buffer", "-b", buffer],
        _tell(_reason(instance, as_seen), pane_id),
        ["if-shell", "-F", "-t", pane_id, _carries(instance), spell([_receipt(pane_id, REFUSED, token)])],
    ]
    guarded = _if(pane_id, _writable(instance, deadline, as_seen), act, refuse)
    return [["load-buffer", "-b", buffer, DATA], *before, guarded, *after]


def pasted_bytes(paste: Paste) -> bytes:
    """Return what `paste_line` loads: the message, and the Enter behind it where one goes in the same turn."""
    return paste.data + _ENTER if paste.enter else paste.data


def paste_line(pane_id: str, paste: Paste, buffer: str, *, keep_controls: bool) -> Line:
    """Return the line that pastes `pasted_bytes` as `write_line` does, and tells its receipt behind the outcome.

    Programs see the message and the Enter apart by the markers of a bracketed paste. No text of a person's is ever an
    argument, which tmux would keep in its log.
    """
    _checked(_PANE_ID, pane_id)
    for word in (paste.instance, buffer, paste.token):
        _checked(_SAFE, word)
    flags = ["-d", "-r", *(["-S"] if keep_controls else [])]
    act = [["paste-buffer", *flags, "-b", buffer, "-t", pane_id], _receipt(pane_id, Receipt.PASTED.value, paste.token)]
    if paste.enter:
        act.append(_receipt(pane_id, Receipt.SUBMITTED.value, _checked(_SAFE, paste.enter)))
    as_seen = _as_seen(paste.seen)
    refuse = [
        ["delete-buffer", "-b", buffer],
        _tell(f"{_reason(paste.instance, as_seen)} {paste.token}", pane_id),
        ["if-shell", "-F", "-t", pane_id, _carries(paste.instance), spell([_receipt(pane_id, REFUSED, paste.token)])],
    ]
    condition = _writable(paste.instance, paste.deadline, as_seen)
    guarded = _if(pane_id, condition, [*act, _tell(f"{DONE} {paste.token}")], refuse)
    return [["load-buffer", "-b", buffer, DATA], guarded]


def end_line(pane_id: str, session_id: str | None, instance: str, deadline: datetime) -> Line:
    """Return the line that kills the pane's session, or only the pane where `session_id` is None.

    The answer comes before the kill: what asks may be attached to what ends.
    """
    _checked(_PANE_ID, pane_id)
    _checked(_SAFE, instance)
    verdict = f"#{{?{_carries(instance)},#{{?{_before(deadline)},{DONE},{LATE}}},{ABSENT}}}"
    kill = (
        ["kill-pane", "-t", pane_id]
        if session_id is None
        else ["kill-session", "-t", _checked(_SESSION_ID, session_id)]
    )
    return [_guarded(pane_id, verdict, [_tell(DONE), kill], [_tell(verdict, pane_id)])]


def clear_line(session_id: str, deadline: datetime) -> Line:
    """Return the line that kills the session if every pane of its windows is dead, and tells `done`, `alive` or `late`.

    Whose the panes are is not asked: no program runs in them.
    """
    target = f"{_checked(_SESSION_ID, session_id)}:"
    verdict = f"#{{?{_LIVING},{ALIVE},#{{?{_before(deadline)},{DONE},{LATE}}}}}"
    kill = ["kill-session", "-t", session_id]
    return [_guarded(target, verdict, [_tell(DONE), kill], [_tell(verdict, target)])]


def spawn_line(spawn: Spawn, buffer: str, tmux: str, *, remain_on_exit: bool) -> Line:
    """Return the line that makes the pane with its tag, and tells `done`, its id, session, pid, server and socket.

    It loads `spawn_bytes` into the buffer, from which the pane takes them by the program `tmux`. No shell of the
    operator's is run; the folder is entered by the program itself, since tmux starts silently elsewhere where `-c`
    cannot be entered.

    A hook of a person's (`after-new-session`) runs before the commands that follow, and may make another pane or window
    the current one: so what is to be of the pane's own is not said of the current one.
    """
    target = f"={_checked(_SAFE, spawn.target)}:"
    mark = str(limit_of(_checked(_SAFE, spawn.instance)))
    inner = [_TAKE, "sh", tmux, _checked(_SAFE, buffer)]
    program = [*_tag(spawn.instance).split(), "/bin/sh", "-c", _RUN_CLEAN, "sh", mark, *inner]
    report = f"{ANSWER}{DONE} #{{pane_id}} #{{session_id}} #{{pane_pid}} #{{pid}} #{{socket_path}}"
    make = ["new-session", "-d", "-P", "-F", report, "-s", spawn.target, "-x", _COLUMNS, "-y", _ROWS]
    act = [
        [*make, "-c", literal_format(str(spawn.cwd)), "-e", f"{MARKER}={spawn.instance}", "--", *program],
        *_options(spawn, target, remain_on_exit=remain_on_exit),
    ]
    late = [["delete-buffer", "-b", buffer], _tell(LATE)]
    in_time = _before(spawn.deadline)
    return [["load-buffer", "-b", buffer, DATA], ["if-shell", "-F", in_time, spell(act), spell(late)]]


def finish_line(spawn: Spawn, session_id: str, *, remain_on_exit: bool) -> Line:
    """Return what gives the session that was made its name, and its options, each to be asked for by itself."""
    name = ["rename-session", "-t", _checked(_SESSION_ID, session_id), _checked(_SAFE, spawn.target)]
    return [name, *_options(spawn, f"{session_id}:", remain_on_exit=remain_on_exit)]


def _options(spawn: Spawn, target: str, *, remain_on_exit: bool) -> Line:
    return [
        ["set-option", "-w", "-t", f"{target}^", "remain-on-exit", "on" if remain_on_exit else "off"],
        ["set-option", "-w", "-t", f"{target}^", "window-size", "manual"],  # whoever looks would decide it otherwise
        ["set-option", "-t", target, "destroy-unattached", "off"],  # somebody may have it on in a server of theirs
        ["set-option", "-t", target, "status-format[0]", _viewed(spawn.target)],
        ["set-option", "-t", target, "status", "on"],
    ]


def _viewed(target: str) -> str:
    """Return what the last line of a client shows below the session: what its keys do, and how to leave it."""
    name = literal_format(target.removeprefix(TARGET_PREFIX))
    looks = f"read-only: keys do nothing | leave: #{{prefix}} d | type: attach {name} --write"
    types = "what you type goes to the agent | leave: #{prefix} d"
    return f" #{{?client_readonly,{looks},{types}}} "


def spawn_bytes(spawn: Spawn) -> bytes:
    """Return what the pane's shell is to do: enter the folder, take the environment, and become the program."""
    env = {**spawn.env, MARKER: spawn.instance}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
    cwd, launcher = shlex.quote(str(spawn.cwd)), shlex.quote(str(spawn.launcher))
    return os.fsencode(f"cd -- {cwd} || exit\nunset OLDPWD\n{exports}exec {launcher}\n")


def screen_line(pane_id: str, instance: str, lines: int, nonce: str) -> Line:
    """Return the line that prints the screen and that many lines of history, wrapped lines joined; see `screens_of`.

    The nonce, new for each call, tells our words from the program's, which may be the same otherwise.
    """
    _checked(_PANE_ID, pane_id)
    for word in (instance, nonce):
        _checked(_SAFE, word)
    told = _tell(f"{nonce} {instance} #{{history_size}}", pane_id)
    act = [told, ["capture-pane", "-p", "-J", "-S", f"-{lines}", "-t", pane_id]]
    return [_if(pane_id, _carries(instance), act, [_tell(f"{nonce} {ABSENT}")])]


def window_format(instance: str) -> str:
    """Return the format that tells of the pane's window; see `window_of`. No text of anybody's is in what it tells."""
    return f"#{{?{_carries(_checked(_SAFE, instance))},{_WINDOW},{ABSENT}}}"


def window_of(told: str, options: Mapping[str, Any]) -> Window | None:
    """Return the window, as `window_format` was expanded for it; None of a pane that is gone or lacks the tag.

    Raises TmuxSilent for an answer that is not understood.
    """
    if told in (ABSENT, ""):
        return None
    found = re.fullmatch(_WINDOW_TOLD, told)
    if found is None:
        raise silent(f"it told something else of the window: {told[:80]!r}")
    window_id, *numbers, alternate = found.groups()
    columns, rows, history, limit = map(int, numbers)
    return Window(window_id, columns, rows, history, limit, alternate == "1", options)


def view_line(pane_id: str, instance: str, nonce: str) -> Line:
    """Return the line that prints where the cursor is, and below it what the screen shows; see `view_of`."""
    _checked(_PANE_ID, pane_id)
    for word in (instance, nonce):
        _checked(_SAFE, word)
    place = ["display-message", "-p", "-t", pane_id, "#{cursor_x} #{cursor_y} #{keypad_cursor_flag}"]
    act = [_tell(f"{nonce} {instance} 0"), place, ["capture-pane", "-p", "-e", "-t", pane_id]]
    return [_if(pane_id, _carries(instance), act, [_tell(f"{nonce} {ABSENT}")])]


def frame_line(pane_id: str, instance: str, nonce: str) -> Line:
    """Return the line that prints size and cursor of the pane, and below it the screen with its styles; see `frame_of`.

    Blanks at the ends of rows are kept, since they may have a colour.
    """
    _checked(_PANE_ID, pane_id)
    for word in (instance, nonce):
        _checked(_SAFE, word)
    place = ["display-message", "-p", "-t", pane_id, _PLACE]
    act = [_tell(f"{nonce} {instance} 0"), place, ["capture-pane", "-p", "-e", "-N", "-t", pane_id]]
    return [_if(pane_id, _carries(instance), act, [_tell(f"{nonce} {ABSENT}")])]


def frame_of(out: str, instance: str, nonce: str) -> Frame | None:
    """Return what `frame_line` with that nonce printed; None of a pane that does not carry the tag."""
    shown = screens_of(out, nonce).get(instance)
    if shown is None:
        return None
    place, *rows = shown[0].removesuffix("\n").split("\n")
    columns, height, column, row, visible = (int(number or 0) for number in place.split(" "))
    text = re.sub(_CONTROLS, lambda found: found[0] if _KEPT_CONTROL.fullmatch(found[0]) else "", "\n".join(rows))
    return Frame(columns, height, (column, row), bool(visible), text)


def keys_line(pane_id: str, instance: str, buffer: str, deadline: datetime, *, keep_controls: bool) -> Line:
    """Return the line that writes keys of somebody who watches, byte by byte, and leaves no receipt.

    `keep_controls`: see `write_line`.
    """
    _checked(_PANE_ID, pane_id)
    for word in (instance, buffer):
        _checked(_SAFE, word)
    paste = ["paste-buffer", "-d", "-r", *(["-S"] if keep_controls else []), "-b", buffer, "-t", pane_id]
    refuse = [["delete-buffer", "-b", buffer], _tell(_reason(instance), pane_id)]
    return [
        ["load-buffer", "-b", buffer, DATA],
        _if(pane_id, _writable(instance, deadline), [paste, _tell(DONE)], refuse),
    ]


def redraw_line(pane_id: str, instance: str) -> Line:
    """Return the line that makes the window a row shorter, and the next time a row longer again.

    Both in one line is no change for a program that looks at its size once it has read the signal.
    """
    _checked(_PANE_ID, pane_id)
    _checked(_SAFE, instance)
    shorter = [["resize-window", "-t", pane_id, "-U", "1"], ["set-option", "-p", "-t", pane_id, _SHORTER, "1"]]
    longer = [["resize-window", "-t", pane_id, "-D", "1"], ["set-option", "-p", "-u", "-t", pane_id, _SHORTER]]
    toggle = _if(pane_id, f"#{{{_SHORTER}}}", longer, shorter)
    return [_if(pane_id, _carries(instance), [toggle, _tell(DONE)], [_tell(ABSENT)])]


def view_of(out: str, instance: str, nonce: str) -> View | None:
    """Return what `view_line` with that nonce printed; None of a pane that does not carry the tag."""
    shown = screens_of(out, nonce).get(instance)
    if shown is None:
        return None
    place, *rows = shown[0].removesuffix("\n").split("\n")
    column, row, application = (int(number) for number in place.split(" "))
    plain, bright = without_styles(rows)
    return View(plain, (column, row), bool(application), bright)


def without_styles(rows: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rows that `capture-pane -e` printed as plain text, and the same with blanks for what is drawn faint.

    A style holds until another is set, also in the rows below.
    """
    styled = re.compile(_STYLED)  # kept by `re`; a list, which loads this module, looks at no screen
    plain, bright, faint = [], [], False
    for row in rows:
        shown = lit = ""
        for part in styled.split(row):
            if (style := _STYLE.fullmatch(part)) is not None:
                faint = _faint_after(style[1], faint)
            elif not styled.fullmatch(part):
                shown += part
                lit += " " * len(part) if faint else part
        plain.append(shown.rstrip(" "))
        bright.append(lit.rstrip(" "))
    return tuple(plain), tuple(bright)


def _faint_after(style: str, faint: bool) -> bool:
    """Return whether text is faint behind a style (ECMA-48 SGR): 2 sets it, 0 and 22 end it.

    A colour's own numbers (`38;5;2`, `48;2;1;2;3`) are none of these.
    """
    numbers = iter(style.split(";"))
    for number in numbers:
        if number in ("38", "48", "58"):
            for _ in range({"5": 1, "2": 3}.get(next(numbers, ""), 0)):
                next(numbers, "")
        elif number == "2":
            faint = True
        elif number in ("", "0", "22"):
            faint = False
    return faint


def _look_again(pane_id: str, view: View, rows: Sequence[int]) -> tuple[Line, tuple[str, str], Line]:
    """Return what looks at the rows, a format with what it is while they stand as seen, and what cleans up.

    A search (`#{C:…}`) finds a text's first row alone, so it cannot tell whether a row that stands twice is still
    there. What a capture puts into a buffer stands where it was captured; a format has a buffer's first 200 bytes,
    escaped (`buffer_sample`, of the newest buffer without a name). So the rows are captured in pieces of that size,
    and what was seen takes the same way, so that both are escaped and cut alike. The buffers are gone again at once;
    a server that holds as many as it may (`buffer-limit`, 50) loses its oldest to them. Names are short, since a
    process hands tmux 16 KB at most: where a screen is more than that, tmux refuses the line, and no key is written.
    """
    look: list[Command] = [["set", "-s", option, ""] for option in (_NOW, _BEFORE)]
    for first, last in _pieces(view, rows):
        text = "".join(f"{row}\n" for row in view.rows[first : last + 1])
        look.append(["capturep", "-t", pane_id, "-S", str(first), "-E", str(last)])
        look += _kept(_NOW)
        look.append(["setb", "--", text])
        look += _kept(_BEFORE)
    deviating = _deviating(view, rows)
    now = [f"#{{cursor_x}}.#{{cursor_y}}.#{{{_NOW}}}", *(f"#{{C/r:{pattern}}}" for pattern in deviating)]
    before = [f"{view.cursor[0]}.{view.cursor[1]}.#{{{_BEFORE}}}", *("0" for _ in deviating)]
    forget = [["set", "-su", option] for option in (_NOW, _BEFORE)]
    there = ["if-shell", "-F", "-t", pane_id, "#{pane_id}", spell(look)]  # a capture of no pane would end the line
    return [there], (".".join(now), ".".join(before)), forget


def _kept(option: str) -> Line:
    """Return what appends the newest buffer to the option and deletes it."""
    return [["set", "-asF", option, "#{buffer_sample}"], ["deleteb"]]


def _pieces(view: View, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last row of each piece: as many in a line as a sample shows whole, or one."""
    pieces: list[tuple[int, int]] = []
    room = 0
    for row in sorted(set(rows)):
        size = _size(view.rows[row]) + _LINE_END
        if pieces and pieces[-1][1] == row - 1 and size <= room:
            pieces[-1] = (pieces[-1][0], row)
        else:
            pieces.append((row, row))
            room = _SAMPLE
        room -= size
    return pieces


def _deviating(view: View, rows: Sequence[int]) -> list[str]:
    """Return patterns that match a row which begins as one that is longer than a sample, and goes on otherwise.

    Of such a row the sample tells how it begins, and that no pattern matches any row tells the rest. Where the view
    itself has a row that one matches, the two cannot be told apart, and the key is refused.
    """
    long = dict.fromkeys(view.rows[row] for row in rows if _size(view.rows[row]) + _LINE_END > _SAMPLE)
    return [_deviation(text) for text in long]


def _deviation(text: str) -> str:
    end = 0
    while end < len(text) and _size(text[: end + 1]) <= _SAMPLE:
        end += 1
    rest = text[end:]
    opened = "".join(f"($|[^{_in_format(letter)}]|{_literal(letter)}" for letter in rest)
    return f"^{''.join(map(_literal, text[:end]))}{opened}.{')' * len(rest)}"


def _size(text: str) -> int:
    """Return how many bytes a sample has of the text, at most: it escapes what a shell's string would."""
    return len(text.encode(errors="surrogateescape")) + text.count("\\") + text.count("$")


def _literal(letter: str) -> str:
    """Return an extended regular expression, as it stands in a format, for the letter."""
    if letter in "\\^":
        return f"\\{letter}"
    plain = letter == " " or letter.isalnum() or ord(letter) > 127
    return letter if plain else f"[{_in_format(letter)}]"


def _in_format(letter: str) -> str:
    return f"#{letter}" if letter in "#,}" else letter


def screens_of(out: str, nonce: str) -> dict[str, tuple[str, int]]:
    """Return by instance what `screen_line`s with that nonce printed, and how many rows of history the pane has.

    There is none of a pane that does not carry its tag.
    """
    parts = f"\n{out}".split(f"\n{ANSWER}{nonce} ")
    found = dict(part.split("\n", 1) for part in parts[1:] if "\n" in part)
    told = {tuple(head.split(" ")): text for head, text in found.items() if head != ABSENT}
    return {instance: (text, int(history)) for (instance, history), text in told.items()}


def outcomes(out: str) -> dict[str, str]:
    """Return what became of each of several pastes, by the token of its receipt; none of one that gave no answer."""
    answers = (line.removeprefix(ANSWER).split(" ") for line in out.split("\n") if line.startswith(ANSWER))
    return {answer[1]: answer[0] for answer in answers if len(answer) == 2}


def verdicts(out: str) -> list[str]:
    """Return the first word of each guarded line's answer."""
    return [line.removeprefix(ANSWER).split(" ")[0] for line in out.split("\n") if line.startswith(ANSWER)]


def told(out: str) -> list[str]:
    """Return the words of a guarded line's answer; none where it gave none."""
    for line in out.split("\n"):
        if line.startswith(ANSWER):
            return line.removeprefix(ANSWER).split(" ")  # exactly as tmux wrote them: the last may be a path
    return []


def _guarded(target: str, verdict: str, act: Line, refuse: Line) -> list[str]:
    return _if(target, f"#{{==:{verdict},{DONE}}}", act, refuse)


def _if(target: str, condition: str, act: Line, refuse: Line) -> list[str]:
    return ["if-shell", "-F", "-t", target, condition, spell(act), spell(refuse)]


def _writable(instance: str, deadline: datetime, as_seen: tuple[str, str] | None = None) -> str:
    """Return the condition under which something may be written, as one comparison, since that is what most lines pay.

    `as_seen`: a format, and what it would expand to were the pane as it was seen. Without an end of the program, and
    with input on, tmux has `0` for either.
    """
    started, tag = _started(instance)
    state, wanted = f"{started}.#{{pane_dead}}.#{{pane_input_off}}", f"{tag}.0.0"
    if as_seen:
        state, wanted = f"{state}.{as_seen[0]}", f"{wanted}.{as_seen[1]}"
    return f"#{{&&:#{{==:{state},{wanted}}},{_before(deadline)}}}"


def _reason(instance: str, as_seen: tuple[str, str] | None = None) -> str:
    """Return the format that expands to the reason of a refusal, in the turn in which `_writable` did not hold.

    The clock is not asked again, which might have been set back meanwhile: what is left is that it was late.
    """
    reason = f"#{{?#{{==:{as_seen[0]},{as_seen[1]}}},{LATE},{CHANGED}}}" if as_seen else LATE
    reason = f"#{{?pane_dead,{DEAD},#{{?pane_input_off,{CLOSED},{reason}}}}}"
    return f"#{{?{_carries(instance)},{reason},{ABSENT}}}"


def _as_seen(seen: Pane | None) -> tuple[str, str] | None:
    """Return a format, and what it is while nobody watches the pane, who might type, and nobody interrupted it since.

    Who has a terminal is called by it (`/dev/pts/3`), a program by its pid. A window that several sessions show
    counts as watched: who is attached to the others is not asked here.
    """
    if seen is None:
        return None
    interrupted = seen.receipts.get(Receipt.INTERRUPTED, "")
    if interrupted:
        _checked(_SAFE, interrupted)
    alone = "#{m:*/*,#{session_attached_list}}.#{window_linked_sessions}"
    return f"{alone}.#{{{Receipt.INTERRUPTED.value}}}", f"0.1.{interrupted}"


def _receipt(pane_id: str, option: str, token: str) -> list[str]:
    return ["set-option", "-p", "-t", pane_id, option, token]


def _tag(instance: str) -> str:
    return f"{OURS}{instance} "


def _started(instance: str) -> tuple[str, str]:
    """Return a format, and what it is of the pane that was started as that instance."""
    tag = _tag(instance)
    return f"#{{={len(tag)}:pane_start_command}}", tag


def _carries(instance: str) -> str:
    return "#{{==:{},{}}}".format(*_started(instance))


def _before(deadline: datetime) -> str:
    return f"#{{e|<:{_CLOCK},{math.floor(deadline.timestamp())}}}"


def _tell(format_: str, target: str | None = None) -> list[str]:
    return ["display-message", "-p", *(["-t", target] if target else []), ANSWER + format_]


def _checked(grammar: re.Pattern[str], word: str) -> str:
    """Return the word. Raises ValueError for one that tmux would read as something else."""
    if not grammar.fullmatch(word):
        raise ValueError(f"{word!r} cannot stand in a tmux command: it must match {grammar.pattern}")
    return word
