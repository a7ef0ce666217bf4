"""Install the plugin that reports into a session's folder, and interpret what it reports.

The plugin is one of OpenCode's terminal program. `OPENCODE_TUI_CONFIG` names the file that lists it, and
`OPENCODE_CONFIG_CONTENT` adds the session's tools: both are variables of the session alone, and what the operator has
set them to is kept in them. `interpret` is pure and total.
"""

import json
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.base.errors import InvalidValue, TrustFailed
from core.base.files import read_plain
from core.clients import askclient
from core.harness.base import (
    ASKING,
    CLIENT,
    TOOL,
    list_of,
    make_folders,
    object_of,
    text_of,
    write_private,
)
from core.model.activity import Failure
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnFailed,
)
from core.model.tools import SERVER

PLUGIN = "opencode-plugin.js"  #: in the session's folder
TUI_CONFIG = "opencode-tui.json"  #: there too: lists it
STATUS = "opencode-status.json"  #: there too: what its terminal program says of itself
CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"
TUI_VARIABLE = "OPENCODE_TUI_CONFIG"
_CLAIM = "opencode-claim-{instance}"  #: there too: the process that reports
_PLUGIN_ID = "the-loop"  #: what the plugin calls itself; a person may have switched that off for all their sessions
_MOST = 1 << 20  #: bytes of a configuration file
_NONCE_BYTES = 18
_SUMMARY_LIMIT = 500  #: characters of what is asked
_QUESTION_TOOL = askclient.QUESTION_TOOL
_DETAILS = ("command", "filePath", "filepath", "path", "pattern", "url", "query", "description")

_Payload = Mapping[str, Any]


def install_plugin(context: SessionContext, theirs: Mapping[str, Any]) -> None:
    """Make the folders; write the plugin of this instance, the file that lists it, and what asks a person.

    `theirs`: the operator's own file of that kind. Raises TrustFailed.
    """
    make_folders(context)
    folder = context.folder
    try:
        for old in folder.glob(_CLAIM.format(instance="*")):
            old.unlink(missing_ok=True)
        (folder / STATUS).unlink(missing_ok=True)
        write_private(folder / askclient.NONCE, f"{secrets.token_urlsafe(_NONCE_BYTES)}\n")
        write_private(folder / CLIENT, Path(askclient.__file__).read_text(encoding="utf-8"))
        write_private(folder / PLUGIN, plugin_text(context))
        plugins = [*list_of(theirs, "plugin"), (folder / PLUGIN).as_uri()]
        enabled = {**object_of(theirs, "plugin_enabled"), _PLUGIN_ID: True}
        document = {**theirs, "plugin": plugins, "plugin_enabled": enabled}
        write_private(folder / TUI_CONFIG, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: its plugin cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error


def plugin_text(context: SessionContext) -> str:
    """Return the plugin of this instance."""
    folder = context.folder
    own = {
        "folder": str(folder),
        "spool": str(context.spool),
        "poke": str(context.notify),
        "instance": context.instance,
        "service": str(context.service_socket),
        "python": sys.executable,
        "client": str(folder / CLIENT),
        "asking": str(folder / ASKING),
        "tool": str(folder / TOOL),
        "status": str(folder / STATUS),
        "claim": str(folder / _CLAIM.format(instance=context.instance)),
        "tools": f"{SERVER}_",
    }
    text = Path(__file__).with_name("plugin.js").read_text(encoding="utf-8")
    return text.replace('"@own@"', json.dumps(own), 1)


def session_config(context: SessionContext, theirs: str) -> str:
    """Return the configuration that adds the session's tools to what the operator has in the variable, as JSON.

    Raises InvalidValue for an operator's one that cannot be added to.
    """
    document = _object_of(theirs, f"${CONFIG_VARIABLE}") if theirs.strip() else {}
    ours = {"type": "local", "command": list(context.tool_server), "enabled": True}
    return json.dumps({**document, "mcp": {**object_of(document, "mcp"), SERVER: ours}}, ensure_ascii=False)


def read_tui_config(path: str) -> Mapping[str, Any]:
    """Return the operator's own file of that kind, with its plugins by absolute paths; empty where none is named.

    Raises InvalidValue where it cannot be added to.
    """
    if not path:
        return {}
    try:
        document = _object_of(read_plain(Path(path), _MOST).decode("utf-8", "replace"), path)
    except FileNotFoundError:
        return {}  # OpenCode passes it over, too
    except OSError as error:
        raise InvalidValue(f"opencode: {path} cannot be read: {error.strerror}", "make it readable") from error
    plugins = [_absolute(each, Path(path).parent) for each in list_of(document, "plugin")]
    return {**document, "plugin": plugins}


def _absolute(plugin: Any, folder: Path) -> Any:
    if isinstance(plugin, list):
        return [_absolute(plugin[0], folder), *plugin[1:]] if plugin else plugin
    relative = isinstance(plugin, str) and plugin.startswith(("./", "../"))
    return str(folder / plugin) if relative else plugin


def _object_of(text: str, where: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(
            f"opencode: {where} is no plain JSON, so nothing can be added to it: {error}",
            "write it without comments, or keep it in OpenCode's own configuration folder",
        ) from error
    if not isinstance(document, dict):
        raise InvalidValue(f"opencode: {where} is no JSON object", "give a JSON object")
    return document


def interpret(report: Report) -> tuple[HarnessEvent, ...]:
    """Return what the report means; () for one that means nothing to us."""
    reading = _READINGS.get(text_of(report.payload, "hook_event_name"))
    return () if reading is None else (reading(report.payload),)


def _session_start(payload: _Payload) -> HarnessEvent:
    return Ready(text_of(payload, "session_id") or None, text_of(payload, "source") or "startup")


def _prompt(payload: _Payload) -> HarnessEvent:
    return PromptReported(text_of(payload, "prompt"), turn=text_of(payload, "prompt_id"))


def _tool_started(payload: _Payload) -> HarnessEvent:
    detail = _short(_detail(object_of(payload, "tool_input")))
    return ToolStarted(text_of(payload, "tool_name"), detail, text_of(payload, "prompt_id"))


def _tool_ended(payload: _Payload) -> HarnessEvent:
    return ToolEnded(text_of(payload, "tool_name"))


def _permission(payload: _Payload) -> HarnessEvent:
    tool, given = text_of(payload, "tool_name"), object_of(payload, "tool_input")
    if tool == _QUESTION_TOOL:
        asked = (text_of(each, "question") for each in list_of(given, "questions") if isinstance(each, dict))
        return DialogReported(question=True, summary=_short("; ".join(text for text in asked if text)))
    detail = _detail(given)
    return DialogReported(question=False, summary=_short(f"{tool}: {detail}" if detail else tool))


def _stop(payload: _Payload) -> HarnessEvent:
    return TurnEnded(text_of(payload, "last_assistant_message"), turn=text_of(payload, "prompt_id"))


def _stop_failure(payload: _Payload) -> HarnessEvent:
    error, message = text_of(payload, "error"), text_of(payload, "message")
    return TurnFailed(error, message, failure_of(error, payload.get("status")), text_of(payload, "prompt_id"))


def _session_end(payload: _Payload) -> HarnessEvent:
    reason = text_of(payload, "reason") or "other"
    return Ended(reason, by_person=reason == "prompt_input_exit")


def _detail(given: Mapping[str, Any]) -> str:
    """Return what a tool is given, in a line: its command, its file or the like, else the permission's patterns."""
    named = next((text for key in _DETAILS if (text := text_of(given, key))), "")
    return named or ", ".join(each for each in list_of(given, "patterns") if isinstance(each, str))


def _short(text: str) -> str:
    return text if len(text) <= _SUMMARY_LIMIT else text[: _SUMMARY_LIMIT - 1] + "…"


#: OpenCode's names of errors (1.18).
_FAILURES = {
    "ProviderAuthError": Failure.LOGIN,
    "ContextOverflowError": Failure.LENGTH,
    "MessageOutputLengthError": Failure.LENGTH,
    "ProviderModelNotFoundError": Failure.MODEL,
}
_BY_STATUS = {
    401: Failure.LOGIN,
    403: Failure.LOGIN,
    402: Failure.ACCOUNT,
    404: Failure.MODEL,
    413: Failure.LENGTH,
    429: Failure.LIMIT,
}


def failure_of(error: str, status: Any) -> Failure:
    """Return what OpenCode's name for an error means, with the status of the model's server where it is known."""
    if error in _FAILURES:
        return _FAILURES[error]
    if isinstance(status, int) and status >= 500:
        return Failure.SERVICE
    return _BY_STATUS.get(status, Failure.OTHER) if isinstance(status, int) else Failure.OTHER


_READINGS: Mapping[str, Callable[[_Payload], HarnessEvent]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _tool_started,
    "PostToolUse": _tool_ended,
    "PermissionRequest": _permission,
    "Answered": _tool_started,  # the dialog is over, and the tool goes on or the turn ends
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "SessionEnd": _session_end,
}
