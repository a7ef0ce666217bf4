"""What a text of ours tells people to do, as a chat does it: by a button below it, by a command of the chat, or there.

Core's texts name shell commands (`the-loop standing start scribe`): that is what works wherever they are read. Whoever
reads them in a chat may be far from the machine, so each is replaced by what they can use there. What needs the machine
itself names the machine.
"""

import shlex
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence

from core.commandtable import COMMANDS, Command
from core.config.settings import Settings
from core.model.asking import Button, Press, Role
from core.session.commands import each_named

Typed = Callable[[Role], str]  #: how a command that needs the role begins in the chat; "": nobody there can give one

#: by the words of a command line: the buttons that do the same to the session, or to what the first argument names
_BUTTONS: Mapping[str, frozenset[Press]] = {
    "standing start": frozenset({Press.BRING_UP, Press.START}),
    "standing stop": frozenset({Press.STOP}),
    "standing restart": frozenset({Press.RESTART}),
    "standing pause": frozenset({Press.PAUSE}),
    "standing resume": frozenset({Press.RESUME}),
    "standing interrupt": frozenset({Press.BREAK, Press.INTERRUPT}),
    "standing screen": frozenset({Press.SCREEN}),
    "standing cancel": frozenset({Press.CANCEL}),
    "standing confirm": frozenset({Press.CONFIRM}),
    "loop stop": frozenset({Press.STOP_LOOP}),
}
_OF_ITS_TARGET = frozenset({Press.CANCEL, Press.CONFIRM, Press.STOP_LOOP})  #: the others are about the post's session
_ROWS = {command.cli: command for command in COMMANDS if command.cli}
_ANEW = next(command for command in COMMANDS if command.word == "new")


def as_done_there(
    text: str,
    settings: Settings,
    environ: Mapping[str, str],
    typed: Typed,
    buttons: Iterable[Button] = (),
    name: str = "",
) -> str:
    """Return the text with each shell command replaced by what does the same where the text is read.

    `buttons`: those that are shown below it, about the session of that name. Code that is none of our commands stays.
    """
    shown = [button for button in buttons if button.role is not Role.OPERATOR or typed(Role.OPERATOR)]
    there = f" (on {socket.gethostname()})"

    def instead(words: str, exact: str) -> str:
        argv = _split(words)
        return _by_button(argv, shown, name) or _by_command(argv, typed) or f"{exact}{there}"

    return each_named(text, settings, environ, instead).replace(there * 2, there)  # it may have passed here before


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:  # half a quotation
        return words.split()


def _by_button(argv: Sequence[str], buttons: Iterable[Button], name: str) -> str:
    """Return the label of the button that does it, "" where none does."""
    presses, given = _BUTTONS.get(" ".join(argv[:2]), frozenset[Press]()), list(argv[2:])
    if given == [name, "--fresh"]:
        presses, given = frozenset({Press.ANEW}), [name]
    for button in buttons:
        about = button.target if button.press in _OF_ITS_TARGET else name
        if button.press in presses and given == [about]:
            return f"*{button.label}*"
    return ""


def _by_command(argv: Sequence[str], typed: Typed) -> str:
    """Return the chat's command that does it, "" where there is none that anybody there may give."""
    command, given = _ROWS.get(" ".join(argv[:2])) or _ROWS.get(" ".join(argv[:1])), list(argv[2:])
    if command is not None and command.cli == "standing start" and given[1:] == ["--fresh"]:
        command, given = _ANEW, given[:1]
    if command is None or not command.chat or not _is_told(command, given):
        return ""
    begins = typed(command.role)
    words = [word for word in given if word != "--text"]
    return f"`{' '.join([begins, command.word, *words])}`" if begins else ""


def _is_told(command: Command, given: Sequence[str]) -> bool:
    """Return whether the chat's command takes what the shell's is given."""
    if command.takes_text:
        return len(given) == 3 and given[1] == "--text"
    if any(word.startswith("-") for word in given):
        return False
    return len(given) == 1 if command.names else not given
