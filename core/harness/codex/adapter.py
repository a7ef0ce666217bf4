"""The adapter of Codex CLI: its traits, its launch, and what its files tell. docs/harnesses.md tells what is proven."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import HarnessNotInstalled, InvalidValue, StoreBroken, TrustFailed, UnsupportedHarness
from core.harness.base import ASKING, REPORTER, descendants, find_executable, make_folders
from core.harness.codex.arguments import (
    MANAGED,
    asks_by_itself,
    given,
    read_toml,
    refuse_owned,
    settings_of,
    toml,
    trusts,
)
from core.harness.codex.files import (
    CodexFiles,
    Rollout,
    RolloutTurns,
    asks_for_login,
    has_answer,
    has_turn,
    latest_edge,
    open_conversations,
    read_input_line,
    reads,
    retry_of,
)
from core.harness.codex.hooks import hook_overrides, interpret
from core.harness.codex.working import WorkingFile
from core.harness.programs import Programs, run_program
from core.harness.reporting import install_reporter
from core.model.activity import ActivityState, Capability, Failure
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
    numbers_of,
)
from core.model.pane import InputLine, View
from core.model.session import Definition
from core.model.tools import SERVER

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord

#: Oldest first: the oldest that is supported, and the newest that is known.
TRIED = ("0.159.3", "0.171.0")
NEEDED = (0, 159)
_SAID = re.compile(r"codex-cli (\d+(?:\.\d+)+\S*)")
_PROGRAM = "codex"
_DEFAULT_PROVIDER = "openai"
_NOT_LOGGED_IN = 1  #: how `codex login status` ends then
_LOGIN = (
    "Codex is not logged in, and asks how at its start; nothing is typed into the session meanwhile; on this machine "
    "run `codex login`, then restart the session"
)
_HOOKS_OFF = (
    "Codex runs no hooks, because {key} in {path}: its turns are reported late, from its own files, and its dialogs "
    "are recognised only on its screen; {remedy}"
)
_REMEDY = "remove it there, or give the session `-c features.hooks=true` in its harnessArgs, then restart it"
_OWNERS = "only the machine's owner can change that"


class CodexHarness:
    """Drives Codex in its pane.

    `environ` is what the pane will inherit: HOME, CODEX_HOME, PATH and keys are read from it. `trust_enabled`: answer
    for the operator that the session's folder is trusted, where nobody has decided.
    """

    name = "codex"
    traits = Traits(
        id_policy=IdPolicy.LEARNT,
        title="Codex CLI",
        settle=0.1,  # no Enter was lost at 0, see the ADR
        echo=Echo("\u203a", r"\[Pasted Content \d+ chars\]"),
        queues_input=False,  # nothing but its screen tells what it holds in mid-turn, so that a text waits with us
        evidence=True,
        boot_signal=False,  # its SessionStart comes with the first prompt
        failure_hook=False,
        lacks=frozenset({Capability.BACKGROUND_TASKS}),
        turn_gate=True,
        tools=True,
        clear=b"\x05" + b"\x15" * 40,  # C-e, then C-u: a line in two of them; C-c would end it where nothing is typed
        interrupt=b"\x1b",
        remedies={
            Failure.LOGIN: "on {host} run `codex login`; if it uses an API key, correct that key and run "
            "`the-loop restart`",
            Failure.LENGTH: "type `/compact` or `/new` at its terminal, {attach}",
            Failure.MODEL: "choose another by `/model` at its terminal, {attach}",
        },
        input_line=True,
        flush=0.3,  # the end of its turn reaches the disk about 0.1 s after the Stop hook
    )

    def __init__(self, environ: Mapping[str, str], *, trust_enabled: bool = True) -> None:
        self._environ = environ
        self._files = CodexFiles.of(environ)
        self._trust_enabled = trust_enabled
        self._programs = Programs(TRIED, _SAID)
        self._paths: dict[str, Path] = {}  #: of the records that were found, by conversation
        self._working: dict[str, WorkingFile] = {}

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue."""
        refuse_owned(args)
        self._executable()
        found = self.installed()
        if found is not None and found.version and numbers_of(found.version) < NEEDED:
            raise UnsupportedHarness(
                f"codex {found.version} is too old: {'.'.join(map(str, NEEDED))} and newer were tried",
                "install a newer one, for example `npm install -g @openai/codex`",
            )

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return that it is not logged in, where it is to talk to OpenAI; "" where that is not known to be so."""
        provider = settings_of(self._files.home, args).get("model_provider", _DEFAULT_PROVIDER)
        if provider != _DEFAULT_PROVIDER or any(name in ("--oss", "--local-provider") for name, _ in given(args)):
            return ""
        try:
            code, _ = run_program((self._executable(), "login", "status"), self._environ)
        except (HarnessNotInstalled, OSError):
            return ""
        return _LOGIN if code == _NOT_LOGGED_IN else ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return which settings would keep our hooks from running, and what can be done; "" for none."""
        if read_toml(MANAGED).get("allow_managed_hooks_only") is True:
            return _HOOKS_OFF.format(key="allow_managed_hooks_only is set", path=MANAGED, remedy=_OWNERS)
        features = settings_of(self._files.home, args).get("features")
        off = isinstance(features, Mapping) and features.get("hooks") is False
        place = self._files.home / "config.toml"
        return _HOOKS_OFF.format(key="features.hooks is false", path=place, remedy=_REMEDY) if off else ""

    def installed(self) -> Installed | None:
        """Ask the program for its version, once for each program that it is."""
        return self._programs.installed(self._executable, self._environ)

    def new_session_id(self) -> str | None:
        """Return None: Codex chooses it."""
        return None

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the conversation's record holds a turn. Raises TrustFailed where it cannot be read."""
        path = self._conversation(context)
        return path is not None and has_turn(path)

    def missing(self, context: SessionContext) -> str:
        """Return that its record is not there, or that it holds nothing."""
        if context.session_id is None:
            return "it has no id"
        path = self._conversation(context)
        where = self._files.sessions
        return f"its record {path} holds no turn" if path else f"it has no record under {where} (any more)"

    def answered(self, context: SessionContext) -> bool:
        """Return whether the conversation's record holds an answer. Raises TrustFailed where it cannot be read."""
        path = self._conversation(context)
        return path is not None and has_answer(path)

    def prepare(self, context: SessionContext) -> None:
        """Write the reporter into the session's folder. All else is told Codex in its arguments. Raises TrustFailed."""
        make_folders(context)
        try:
            install_reporter(context)
        except OSError as error:
            raise TrustFailed(
                f"{context.name}: the hooks' reporter cannot be written: {error.filename}: {error.strerror}",
                "make the state folder writable, then try again",
            ) from error

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the command; the boot prompt follows `--`, so that it is never read as an option.

        Without `--no-daemon` its turns would run in a process outside the pane. Raises HarnessNotInstalled,
        InvalidValue.
        """
        if resume and context.session_id is None:
            raise InvalidValue(f"{context.name}: there is no conversation to resume", "start it anew")
        ours = [word for each in self._overrides(context) for word in ("-c", each)]
        settings = settings_of(self._files.home, context.args)
        mode = () if asks_by_itself(context.args, settings) else ("--ask-for-approval", "on-request")
        words = ("resume",) if resume else ()
        argv = [self._executable(), *words, "--no-daemon", "--cd", str(context.cwd), *mode, *ours, *context.args]
        last = [context.session_id] if resume and context.session_id else []
        if prompt is not None or last:
            argv += ["--", *last, *([] if prompt is None else [prompt])]
        return Launch(tuple(argv), keeps_rows=True)

    def _overrides(self, context: SessionContext) -> Iterator[str]:
        """Yield the settings that hold for this process alone."""
        yield from hook_overrides(context.folder / REPORTER)
        command, *arguments = context.tool_server
        server = {"command": command, "args": arguments, "default_tools_approval_mode": "approve"}
        yield f"mcp_servers.{SERVER}={toml(server)}"
        yield "check_for_update_on_startup=false"
        folder = Path(os.path.realpath(context.cwd))
        if self._trust_enabled and not trusts(settings_of(self._files.home, context.args), folder):
            yield f"projects={toml({str(folder): {'trust_level': 'trusted'}})}"

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means."""
        return interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's record, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return Rollout(partial(self._readable, context), from_start=from_start)

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the conversation's record, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return RolloutTurns(partial(self._readable, context), since=since)

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Tell whether the end of a turn is the latest in the conversation's record, and younger."""
        path = self._readable(context)
        edge = latest_edge(path) if path is not None else None
        return edge is not None and edge.over and edge.at is not None and edge.at >= since

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Return what the record of the conversation shows that the pane's process has open.

        A dialog stands in no record: while the reporter's marker tells of one and the turn goes on, it counts as open.
        """
        opened = open_conversations(self._files, [pane_pid, *descendants(pane_pid)])
        session_id = context.session_id if context.session_id in opened or not opened else opened[-1]
        if session_id is None:
            return None
        try:
            path = self._find(session_id)
            edge = latest_edge(path) if path is not None else None
        except OSError:
            return None
        if path is None or (edge is not None and edge.over):
            at = edge.at if edge is not None else None
            return StatusProbe(ActivityState.IDLE, turn_over=True, written_at=at, session_id=session_id)
        asks = (context.folder / ASKING).exists()
        state = ActivityState.PERMISSION if asks else ActivityState.BUSY
        return StatusProbe(state, written_at=edge.at if edge else None, session_id=session_id)

    def working(self, context: SessionContext) -> Working | None:
        """Return what the conversation's record tells of plan, tool, model, tokens and limit."""
        path = self._readable(context)
        if path is None or context.session_id is None:
            return None
        found = self._working.get(context.uid)
        if found is None or found.path != path:
            found = self._working[context.uid] = WorkingFile(path)
        return found.look()

    def input_line(self, view: View) -> InputLine | None:
        """Return whether the screen's rows show the line in which a message is written."""
        return read_input_line(view)

    def remark(self, dialog: str) -> str:
        """Return what helps where it asks how to log in; "" for every other dialog."""
        return _LOGIN if asks_for_login(dialog) else ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return whether the screen shows its input line, and what it works with: not so while it resumes."""
        return reads(screen)

    def retry_shown(self, screen: str) -> Retry | None:
        """Return what it says above its input line of a request that failed."""
        return retry_of(screen)

    def _executable(self) -> str:
        return find_executable(self.name, _PROGRAM, self._environ.get("PATH", os.defpath))

    def _conversation(self, context: SessionContext) -> Path | None:
        """Return the conversation's record, None where there is none. Raises TrustFailed."""
        if context.session_id is None:
            return None
        try:
            return self._find(context.session_id)
        except OSError as error:
            raise TrustFailed(
                f"the conversation cannot be looked for: {error.filename}: {error.strerror}",
                "make the folder readable, then try again",
            ) from error

    def _readable(self, context: SessionContext) -> Path | None:
        """Return the same. Raises StoreBroken."""
        try:
            return self._conversation(context)
        except TrustFailed as error:
            raise StoreBroken(error.message, error.remedy) from error

    def _find(self, session_id: str) -> Path | None:
        known = self._paths.get(session_id)
        if known is not None and known.exists():
            return known
        found = self._files.conversation(session_id)
        if found is not None:
            self._paths[session_id] = found
        return found
