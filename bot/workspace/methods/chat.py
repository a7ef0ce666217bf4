"""chat.postMessage, update, delete, postEphemeral, getPermalink."""

from __future__ import annotations

from typing import Any

from bot.workspace import limits
from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method
from bot.workspace.model import Channel
from bot.workspace.shapes import bot_fields
from bot.workspace.text import sent_to_wire


def _post_message(call: Call) -> Json:
    channel = call.channel(writable=True)
    if not call.is_member(channel) and "chat:write.public" not in call.app.scopes:
        raise ApiError("not_in_channel")
    fields: Json = {**_author(call), **_content(call)}
    if call.args.get("metadata"):
        fields["metadata"] = limits.check_metadata(call.structure("metadata", "invalid_metadata_format"))
    if call.text("thread_ts"):
        fields["thread_ts"] = call.text("thread_ts")
        if call.flag("reply_broadcast"):
            fields["subtype"] = "thread_broadcast"
    message = call.room.posting.post(channel, fields)
    return {"channel": channel.id, "ts": message["ts"], "message": message}


def _update(call: Call) -> Json:
    channel = call.channel(writable=True)
    message = _own_message(call, channel, "cant_update_message")
    if len(call.text("text")) > limits.UPDATE_TEXT_MAX:
        raise ApiError("msg_too_long")
    # Text without blocks takes the old blocks away; an update without metadata keeps the old metadata.
    fields: Json = {"blocks": None, **_content(call)}
    if call.args.get("metadata"):
        fields["metadata"] = limits.check_metadata(call.structure("metadata", "invalid_metadata_format"))
    changed = call.room.posting.edit(channel, message, fields, call.app.bot_user)
    return {"channel": channel.id, "ts": message["ts"], "text": changed["text"], "message": changed}


def _delete(call: Call) -> Json:
    channel = call.channel()
    message = _own_message(call, channel, "cant_delete_message")
    call.room.posting.delete(channel, message)
    return {"channel": channel.id, "ts": message["ts"]}


def _post_ephemeral(call: Call) -> Json:
    channel = call.channel(writable=True)
    call.need_member(channel)
    user = call.needed("user")
    if user not in call.room.store.members(channel.id):
        raise ApiError("user_not_in_channel")
    fields: Json = {**bot_fields(call.app, call.room.team["id"]), **_content(call)}
    if call.text("thread_ts"):
        fields["thread_ts"] = call.text("thread_ts")
    return {"message_ts": call.room.posting.whisper(channel, user, fields)["ts"]}


def _get_permalink(call: Call) -> Json:
    channel = call.channel()
    ts = call.text("message_ts")
    message = call.message(channel, ts)
    link = f"https://{call.room.team['domain']}.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"
    thread = message.get("thread_ts")
    return {"channel": channel.id, "permalink": f"{link}?thread_ts={thread}&cid={channel.id}" if thread else link}


def _author(call: Call) -> Json:
    fields = bot_fields(call.app, call.room.team["id"])
    custom = {key: call.text(key) for key in ("username", "icon_emoji", "icon_url") if call.text(key)}
    if custom:
        call.need_scope("chat:write.customize")
    return {**fields, **custom}


def _content(call: Call) -> Json:
    """Return text, blocks and attachments as they are stored; no_text when there is nothing to show."""
    blocks = call.structure("blocks", "invalid_blocks_format")
    if call.args.get("markdown_text") is not None:
        text = limits.check_markdown(call.args["markdown_text"], bool(call.args.get("text") or blocks))
        return {"text": sent_to_wire(text), "blocks": limits.check_blocks([{"type": "markdown", "text": text}])}
    attachments: Any = call.structure("attachments", "invalid_attachments")
    fields: Json = {"text": sent_to_wire(limits.check_text(call.args.get("text") or ""))}
    if blocks:
        fields["blocks"] = limits.check_blocks(blocks)
    if attachments:
        fields["attachments"] = limits.check_attachments(attachments)
    if not fields["text"].strip() and len(fields) == 1:
        raise ApiError("no_text")
    return fields


def _own_message(call: Call, channel: Channel, refusal: str) -> Json:
    message = call.message(channel, call.text("ts"))
    if message.get("bot_id") != call.app.bot_id:
        raise ApiError(refusal)
    return message


METHODS = {
    "chat.postMessage": Method(_post_message, "chat:write"),
    "chat.update": Method(_update, "chat:write"),
    "chat.delete": Method(_delete, "chat:write"),
    "chat.postEphemeral": Method(_post_ephemeral, "chat:write"),
    "chat.getPermalink": Method(_get_permalink),
}
