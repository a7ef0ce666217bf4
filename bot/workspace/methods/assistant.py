"""assistant.threads.setStatus: what an app is doing, shown below a thread for a while."""

from __future__ import annotations

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method

_MOST_MESSAGES = 10


def _set_status(call: Call) -> Json:
    for name in ("channel_id", "thread_ts"):
        call.needed(name)
    if "status" not in call.args:
        raise ApiError("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: status"]})
    messages = call.structure("loading_messages", "invalid_arguments") or []
    if not isinstance(messages, list) or len(messages) > _MOST_MESSAGES:
        raise ApiError("invalid_arguments")
    channel = Call(call.room, call.app, {"channel": call.text("channel_id")}).channel(writable=True)
    call.need_member(channel)
    call.message(channel, call.text("thread_ts"), "thread_not_found")
    call.room.posting.set_status(channel, call.text("thread_ts"), call.text("status"))
    return {}


METHODS = {"assistant.threads.setStatus": Method(_set_status, "chat:write")}
