"""The adapter of OpenCode: its traits, its launch, its arguments, and which versions were tried.

docs/harnesses.md shows what is proven of it, and docs/adr/0052 why it is driven as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import InvalidValue, UnsupportedHarness
from core.base.files import read_plain
from core.harness.base import find_executable, number_of, read_opinion
from core.harness.opencode.records import (
    Conversation,
    TakenTexts,
    Turns,
    database_of,
    read_input_line,
    trusted,
    turns_of,
)
from core.harness.opencode.reports import (
    CONFIG_VARIABLE,
    PLUGIN,
    STATUS,
    TUI_CONFIG,
    TUI_VARIABLE,
    install_plugin,
    interpret,
    read_tui_config,
    session_config,
)
from core.harness.programs import Programs
from core.model.activity import Capability, Failure
from core.model.harness import (
    HarnessEvent,
    IdPolicy,
    Installed,
    Launch,
    Report,
    Retry,
    SessionContext,
    StatusProbe,
    Traits,
    Working,
    numbers_of,
)
from core.model.pane import InputLine, View
from core.model.session import Definition

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord

#: Oldest first. Its terminal program loads plugins in all of them.
TRIED = ("1.18.33",)
NEEDED = (1, 18)  #: older ones were never tried
RESUMES = "THE_LOOP_OPENCODE_SESSION"  #: the conversation that a start resumes, for the plugin
_PROGRAM = "opencode"
_PACKAGE = "opencode-ai"
_SECONDS = 20.0  #: it takes 0.6 s, and more on a busy machine
_MOST = 1 << 20  #: bytes of a small file
_SESSION_ID = re.compile(r"ses_[A-Za-z0-9]{1,120}")

#: flag -> why an operator cannot give it
OWNED: Mapping[str, str] = {
    **dict.fromkeys(
        ("--session", "-s", "--continue", "-c", "--fork"),
        "which conversation runs is decided by the session's record",
    ),
    "--prompt": "the boot prompt is given by it; set the session's prompt instead",
    "--pure": "it switches plugins off, by which we know what the session does",
    **dict.fromkeys(("--mini", "--no-replay", "--replay-limit"), "its small interface loads no plugins"),
    **dict.fromkeys(("--help", "-h", "--version", "-v"), "it prints and exits"),
}
_WITH_VALUE = frozenset({"-m", "--model", "--agent", "--log-level", "--port", "--hostname", "--mdns-domain", "--cors"})


class OpenCodeHarness:
    """Drives OpenCode in its pane.

    `environ` is what the pane will inherit: PATH, HOME, XDG_DATA_HOME and OpenCode's own variables are read from it.
    """

    name = "opencode"
    traits = Traits(
        id_policy=IdPolicy.LEARNT,
        title="OpenCode",
        settle=0.3,
        queues_input=True,
        evidence=True,
        recorded_within=5.0,  # 0.2 s where it has the machine for itself; its screen takes much of a processor
        boot_signal=True,
        plugin=PLUGIN,
        tools=True,
        clear=b"\x1b[97;9u\x7f",  # all is selected (super+a), then deleted; nothing happens where nothing stands there
        clear_lines=10_000,
        interrupt=b"\x1b[27u" * 2,  # Escape twice: in their short form two are read as one key of another name
        input_line=True,
        lacks=frozenset({Capability.MODE, Capability.BACKGROUND_TASKS}),
        remedies={
            Failure.LOGIN: "on {host} run `opencode auth login`, then `the-loop restart`",
            Failure.LENGTH: "type `/compact` or `/new` at its terminal, {attach}",
            Failure.MODEL: "choose another by `/models` at its terminal, {attach}",
        },
    )

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._programs = Programs(TRIED, package=_PACKAGE, seconds=_SECONDS)

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue."""
        refuse_owned(args)
        self._executable()
        found = self.installed()
        if found is not None and found.version and numbers_of(found.version) < NEEDED:
            needed = ".".join(map(str, NEEDED))
            raise UnsupportedHarness(
                f"opencode {found.version} is too old: {needed} and newer load the plugin by which we know what a "
                "session does",
                "install a newer one, for example `npm install -g opencode-ai`",
            )
        read_tui_config(self._environ.get(TUI_VARIABLE, ""))

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": it opens none at its start."""
        return ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return what would keep the plugin from running: the variable that switches plugins off is set for it."""
        return ""

    def installed(self) -> Installed | None:
        """Tell the program's version: by its package, else by asking it, once for each program that it is."""
        return self._programs.installed(self._executable, self._environ)

    def new_session_id(self) -> str | None:
        """Return None: it gives its conversations their ids, and the plugin tells which one is shown."""
        return None

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the database holds a message of the conversation. Raises TrustFailed."""
        return self._has(context, "user")

    def missing(self, context: SessionContext) -> str:
        """Return where its conversation would be, or that it has none."""
        if context.session_id is None:
            return "it has no id"
        return f"{self._database()} holds no message of it"

    def answered(self, context: SessionContext) -> bool:
        """Return whether the database holds an answer of the conversation. Raises TrustFailed."""
        return self._has(context, "assistant")

    def prepare(self, context: SessionContext) -> None:
        """Write the plugin into the session's folder. Raises TrustFailed, InvalidValue."""
        install_plugin(context, read_tui_config(self._environ.get(TUI_VARIABLE, "")))

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the command. Raises HarnessNotInstalled, InvalidValue."""
        if resume and (context.session_id is None or not _SESSION_ID.fullmatch(context.session_id)):
            raise InvalidValue(f"{context.name}: opencode has no conversation {context.session_id!r}", "start it anew")
        conversation = ("--session", context.session_id or "") if resume else ()
        last = () if prompt is None else (f"--prompt={prompt}",)
        env = {
            TUI_VARIABLE: str(context.folder / TUI_CONFIG),
            CONFIG_VARIABLE: session_config(context, self._environ.get(CONFIG_VARIABLE, "")),
            RESUMES: (context.session_id or "") if resume else "",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",  # an update in the middle of a session asks in a dialog
            "OPENCODE_PURE": "0",
        }
        return Launch((self._executable(), *conversation, *context.args, *last), env)

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a report of the plugin means."""
        return interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation in the database; None without an id."""
        found = self._conversation(context)
        return None if found is None else TakenTexts(found, from_start=from_start)

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the conversation in the database; None without an id."""
        found = self._conversation(context)
        return None if found is None else Turns(found, since=since)

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Tell whether the database holds the end of a turn that is younger. Raises StoreBroken."""
        found = self._conversation(context)
        turns = [] if found is None else turns_of(found.messages())
        return any(turn.over_at is not None and turn.over_at >= since for turn in turns)

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Read the plugin's status file: it follows what the terminal program shows, and not the events."""
        return read_opinion(context.folder / STATUS)

    def input_line(self, view: View) -> InputLine | None:
        """Return whether the screen's rows show the line in which a message is written."""
        return read_input_line(view)

    def remark(self, dialog: str) -> str:
        """Return "": its dialogs say all there is."""
        return ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return None: the plugin tells when it reads."""
        return None

    def retry_shown(self, screen: str) -> Retry | None:
        """Return None: what its screen tells of a request that is tried again is not read."""
        return None

    def working(self, context: SessionContext) -> Working | None:
        """Return what the database tells of the conversation. Raises StoreBroken."""
        found = self._conversation(context)
        return None if found is None else found.working(_context_size(context))

    def _has(self, context: SessionContext, role: str) -> bool:
        with trusted():
            found = self._conversation(context)
            return found is not None and found.has(role)

    def _conversation(self, context: SessionContext) -> Conversation | None:
        return None if context.session_id is None else Conversation(self._database(), context.session_id)

    def _database(self) -> Path:
        return database_of(self._environ)

    def _executable(self) -> str:
        return find_executable(self.name, _PROGRAM, self._environ.get("PATH", os.defpath))


def refuse_owned(args: Sequence[str]) -> None:
    """Refuse the flags that are ours, and words that would be a folder or a command. Raises InvalidValue."""
    waits = False
    for arg in args:
        flag = arg.partition("=")[0]
        why = OWNED.get(flag)
        if not waits and why is None and not arg.startswith("-"):
            why = "a word that is no flag is a folder or a command to it"
        if why is not None and not waits:
            raise InvalidValue(
                f"harnessArgs of opencode: {arg!r} cannot be given: {why}", f"remove {arg!r} from harnessArgs"
            )
        waits = not waits and arg in _WITH_VALUE


def _context_size(context: SessionContext) -> int | None:
    """Return how many tokens the conversation's model can hold, by the status file."""
    try:
        status = json.loads(read_plain(context.folder / STATUS, _MOST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(status, dict) or status.get("sessionId") != context.session_id:
        return None
    size = number_of(status, "contextSize")
    return None if size is None else int(size)
