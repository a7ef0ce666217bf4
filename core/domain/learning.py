"""What an event of a harness shows of its capabilities. No I/O."""

from core.domain.activity import Activity
from core.domain.capability import LONG_LINES, LONG_TEXT, OUR_TOOL, Capability, Shown
from core.domain.harness import (
    Asked,
    HarnessEvent,
    PromptReported,
    Ready,
    TextQueued,
    TextReturned,
    TextTaken,
    ToolEnded,
    TurnBlocked,
    TurnEnded,
)
from core.domain.observing import is_of_running_turn


def shown_by(activity: Activity, event: HarnessEvent, mode: str) -> Shown:
    """Return what the instance has shown with this event, and before it. `activity`: before the event; `mode`: the
    permission mode that its report names, "" where it names none."""
    shown = {**activity.shown, **({Capability.MODE: True} if mode else {})}
    match event:
        case Ready(source=source):
            shown[Capability.BOOT_HOOK] = True
            if source == "resume":
                shown[Capability.RESUME] = True
        case PromptReported(internal=False, prompt=prompt, turn=turn, pasted=pasted):
            if is_of_running_turn(activity, turn):
                shown[Capability.QUEUE_EVIDENCE] = True
            shown |= _shown_by_paste(prompt, pasted)
        case TurnEnded(pending_tasks=tasks) if activity.in_turn:
            shown[Capability.TURN_EDGES] = True
            if tasks:
                shown[Capability.BACKGROUND_TASKS] = True
        case Asked():
            shown[Capability.PERMISSION_HOOK] = True
        case ToolEnded(tool=tool, task=task):
            if task is not None:
                shown[Capability.BACKGROUND_TASKS] = True
            if tool.startswith(OUR_TOOL):
                shown[Capability.MCP_APPROVAL] = True
        case TurnBlocked():
            shown[Capability.TURN_EDGES] = True
        case TextTaken(prompt=prompt, begins=begins, pasted=pasted):
            shown[Capability.TRANSCRIPT] = True
            shown |= _shown_by_paste(prompt, pasted)
            if not begins:
                shown[Capability.QUEUE_EVIDENCE] = True
        case TextQueued() | TextReturned():
            shown[Capability.TRANSCRIPT] = shown[Capability.QUEUE_EVIDENCE] = True
        case _:
            pass
    return shown


def _shown_by_paste(prompt: str, pasted: tuple[str, ...]) -> Shown:
    """Return what a text shows that reached the model; a short one shows nothing, since it never counts as pasted."""
    if not pasted and prompt.count("\n") <= LONG_LINES and len(prompt) <= LONG_TEXT:
        return {}
    return {Capability.PLAIN_PASTES: not pasted}
