"""The adapter of Claude Code: its traits, its launch, its processes, and which versions were tried.

Claude Code may be started by a script, so its process is searched below the pane's. docs/harness-matrix.md shows what
each version can do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock
from core.base.errors import InvalidValue
from core.harness.base import (
    SETTINGS,
    allowed_tools,
    descendants,
    find_executable,
    install_tools,
    servers_file,
)
from core.harness.claude.arguments import asks_for_bypass, mode_arguments, refuse_owned, take_settings
from core.harness.claude.files import (
    MANAGED,
    MOST_SETTINGS,
    UNCHECKED,
    ClaudeFiles,
    ConversationFile,
    TurnsFile,
    ended_since,
    has_answer,
    has_turn,
    read_input_line,
    read_opinion,
    read_settings,
    retry_of,
    tells_unchecked,
    untaken,
)
from core.harness.claude.hooks import install_hooks, interpret, merged
from core.harness.claude.startup import ClaudeTrust, hooks_off, undecided, unread
from core.harness.claude.work import WorkFiles
from core.harness.programs import Programs
from core.model.activity import Failure
from core.model.harness import (
    Echo,
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
)
from core.model.pane import InputLine, View
from core.model.session import Definition
from core.model.tools import SERVER

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord


#: Oldest first: the oldest that is supported, and the newest that is known. `make harness-matrix` runs the suite of
#: tests/harness over them.
TRIED = ("2.1.197", "2.1.280", "2.1.332")
_SAID = re.compile(r"(\d+(?:\.\d+)+\S*) \(Claude Code\)")
_PROGRAM = "claude"
_LIST = "CLAUDE_CODE_TASK_LIST_ID"  #: names the list of tasks where it is not the conversation's own
_ASKS = (
    "Claude Code asks at its start about the MCP servers {servers}, and nothing is typed into the session meanwhile; "
    "run `claude` in {cwd} once and decide, or name them, letter by letter, in enabledMcpjsonServers or "
    "disabledMcpjsonServers of its settings"
)
_UNREAD = (
    "{path} is not read: it is larger than {most:,} bytes; so it is not known whether it makes Claude Code ask "
    "something at its start, or run no hooks"
)


class ClaudeHarness:
    """Drives Claude Code in its pane.

    `accept_bypass` is auto (only where permission checks are switched off), always or never. `permission_mode` is what
    it is started with, see HarnessTrust. `environ` is what the pane will inherit: HOME, CLAUDE_CONFIG_DIR, PATH and
    ANTHROPIC_API_KEY are read from it.
    """

    name = "claude"
    traits = Traits(
        id_policy=IdPolicy.PREASSIGNED,
        title="Claude Code",
        settle=0.3,  # at 0 up to a third of the CRs is lost, at 0.3 s about one in forty: read with the paste
        echo=Echo("\u276f", r"\[Pasted text #\d+|\[\.\.\.Truncated text #\d+"),
        queues_input=True,
        evidence=True,
        boot_signal=True,
        turn_gate=True,
        tools=True,
        # C-e, then C-u: 2n-1 of them clear n lines, more do nothing, and unlike C-c none ends a turn. Over some sixty
        # in one read are taken for a paste.
        clear=b"\x05" + b"\x15" * 40,
        take_back=b"\x1b[A",  # Up: the whole queue, in every version from 2.1.197 to 2.1.332
        interrupt=b"\x1b",  # Escape; no hook tells of it
        stash=b"\x13",  # C-s
        paste_lines=2,  # 2.1.332 tells its model of a third newline, or the 801st character, that a text was pasted
        paste_chars=700,
        paste_pieces=700,  # read within 2.5 s; 100 kB of lines are 650
        keeps_tabs=False,  # four blanks each, in every version from 2.1.197 to 2.1.332
        own_tags=("pasted_content",),  # 2.1.332 writes `<\pasted_content` in its place
        remedies={
            Failure.LOGIN: "on {host} run `claude` and `/login`; if it uses an API key, correct that key and run "
            "`the-loop restart`",
            Failure.LENGTH: "type `/compact` or `/clear` at its terminal, {attach}",
            Failure.MODEL: "choose another by `/model` at its terminal, {attach}",
        },
        input_line=True,
        flush=0.5,  # its last lines reach the disk about 0.1 s after the Stop hook
    )

    def __init__(
        self,
        clock: Clock,
        environ: Mapping[str, str],
        *,
        trust_enabled: bool = True,
        accept_bypass: str = "auto",
        permission_mode: str | None = None,
    ) -> None:
        self._environ = environ
        self._files = ClaudeFiles.of(environ)
        self._clock = clock
        self._trust_enabled = trust_enabled
        self._accept_bypass = accept_bypass
        self._permission_mode = permission_mode
        self._work = WorkFiles()
        self._programs = Programs(TRIED, _SAID)

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, InvalidValue."""
        refuse_owned(args)
        self._executable()

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return what it would ask about servers of `.mcp.json`, where that is decided, and what of it is not known."""
        asked = undecided(self._files, cwd, (*self._mode(args, cwd), *args), self._version)
        servers = [f"{', '.join(names)} of {path}" for path, names in asked.items()]
        told = [_UNREAD.format(path=path, most=MOST_SETTINGS) for path in unread(cwd)]
        return "; ".join([*([_ASKS.format(servers="; ".join(servers), cwd=cwd)] if servers else []), *told])

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return which settings would keep our hooks from running, and what can be done; "" for none."""
        return hooks_off(self._files, cwd, args)

    def installed(self) -> Installed | None:
        """Ask the program for its version, once for each program that it is."""
        return self._programs.installed(self._executable, self._environ)

    def new_session_id(self) -> str | None:
        """Return a new UUID; Claude Code takes nothing else."""
        import uuid

        return str(uuid.uuid4())

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the conversation's file holds a turn. Raises TrustFailed where it cannot be read."""
        return context.session_id is not None and has_turn(self._conversation(context, context.session_id))

    def missing(self, context: SessionContext) -> str:
        """Return where its conversation would lie, or that it holds nothing."""
        return untaken(self._conversation(context, context.session_id)) if context.session_id else "it has no id"

    def answered(self, context: SessionContext) -> bool:
        """Return whether the conversation's file holds an answer. Raises TrustFailed where it cannot be read."""
        return context.session_id is not None and has_answer(self._conversation(context, context.session_id))

    def prepare(self, context: SessionContext) -> None:
        """Write hooks and settings into the session's folder, and answer the first dialogs.

        Raises TrustFailed, and InvalidValue for settings of the operator that cannot be read.
        """
        rest, theirs = take_settings(context.args, context.cwd)
        install_hooks(context, merged(theirs, self._own_settings(context, rest, theirs)))
        install_tools(context)
        if self._trust_enabled:
            trust = ClaudeTrust(self._files.configuration, self._clock)
            trust.accept(context.cwd, self._environ.get("ANTHROPIC_API_KEY"))

    def _own_settings(self, context: SessionContext, rest: Sequence[str], theirs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what we add: our tools ask nobody, nor does reading what was too long to paste, in our folder."""
        own: dict[str, Any] = {
            "permissions": {"allow": [f"Read(/{context.folder}/**)", *allowed_tools()]},
            "disabledMcpjsonServers": [SERVER],  # of a project: what is allowed by name is ours alone
        }
        asked = asks_for_bypass((*self._mode(context.args, context.cwd), *rest), theirs)
        bypass = self._accept_bypass == "always" or (self._accept_bypass == "auto" and asked)
        if bypass and self._trust_enabled:
            own["skipDangerousModePermissionPrompt"] = True
        return own

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the command; the boot prompt follows `--`, so that it is never read as an option.

        Raises HarnessNotInstalled, InvalidValue.
        """
        if context.session_id is None:
            raise InvalidValue(f"{context.name}: claude needs a conversation id", "take one from new_session_id")
        rest, _ = take_settings(context.args, context.cwd)
        conversation = ("--resume" if resume else "--session-id", context.session_id)
        ours = ("--mcp-config", str(servers_file(context)), "--settings", str(context.folder / SETTINGS))
        mode = self._mode(context.args, context.cwd)
        last = () if prompt is None else ("--", prompt)
        argv = (self._executable(), *conversation, *ours, *mode, *rest, *last)
        return Launch(argv, keeps_rows=True)  # tmux 3.3 gives joined emoji twice the columns that it counts

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means."""
        return interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return ConversationFile(self._conversation(context, context.session_id), from_start=from_start)

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return TurnsFile(self._conversation(context, context.session_id), since=since)

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Tell whether the conversation's file holds the end of a turn that is younger."""
        return context.session_id is not None and ended_since(self._conversation(context, context.session_id), since)

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Read the status file of the pane's process, or of the one that runs below it.

        Where its conversation is parked, that of the job which goes on with it.
        """
        parked, own = read_opinion(self._files.status(pane_pid))
        if parked or own is not None:
            return own
        found = (read_opinion(self._files.status(pid)) for pid in descendants(pane_pid))
        return next((opinion for parked, opinion in found if parked or opinion is not None), None)

    def working(self, context: SessionContext) -> Working | None:
        """Read on in the conversation's file, and its list of tasks; None without an id, or before its first turn."""
        if context.session_id is None:
            return None
        tasks = self._environ.get(_LIST) or context.session_id
        path = self._conversation(context, context.session_id)
        return self._work.look(context.uid, path, self._files.tasks(tasks))

    def input_line(self, view: View) -> InputLine | None:
        """Return whether the screen's rows show the line in which a message is written."""
        return read_input_line(view)

    def remark(self, dialog: str) -> str:
        """Return what helps where auto mode's check cannot be reached; "" for every other dialog."""
        return UNCHECKED if tells_unchecked(dialog) else ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return None: a hook tells when it reads."""
        return None

    def retry_shown(self, screen: str) -> Retry | None:
        """Return what it says above its input line of a request that failed."""
        return retry_of(screen)

    def _mode(self, args: Sequence[str], cwd: Path) -> tuple[str, ...]:
        """Return the arguments that name the permission mode, at a start and at a resume alike.

        What a project's settings name does not count: a folder that was cloned must not choose what its agent may do.
        """
        try:
            rest, given = take_settings(args, cwd)
        except InvalidValue:  # a start refuses them, and says why
            rest, given = tuple(args), {}
        own = (read_settings(self._files.settings), read_settings(MANAGED))
        return mode_arguments(self._permission_mode, rest, given, own)

    def _executable(self) -> str:
        return find_executable(self.name, _PROGRAM, self._environ.get("PATH", os.defpath))

    def _version(self) -> str:
        installed = self.installed()
        return installed.version if installed else ""

    def _conversation(self, context: SessionContext, session_id: str) -> Path:
        return self._files.conversation(context.cwd, session_id)
