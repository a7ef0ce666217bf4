"""files.info, and the two calls around an upload: getUploadURLExternal, completeUploadExternal."""

from __future__ import annotations

import mimetypes
from typing import Any

from bot.workspace.errors import ApiError, Json
from bot.workspace.ids import new_id
from bot.workspace.methods.base import Call, Method
from bot.workspace.shapes import bot_fields, file_view

_MOST_FILES = 10


def _info(call: Call) -> Json:
    found = call.room.store.file(call.text("file"))
    if found is None:
        raise ApiError("file_not_found")
    return {"file": file_view(found[0], call.room.base_url)}


def _get_upload_url(call: Call) -> Json:
    name, length = call.needed("filename"), str(call.args.get("length") or "")
    if not length.isdigit() or int(length) < 1:
        raise ApiError("invalid_arguments", response_metadata={"messages": ["[ERROR] invalid length"]})
    file_id, ticket = new_id("F"), new_id("U")
    call.room.uploads.expect(ticket, file_id, name, int(length), call.app.id)
    return {"upload_url": f"{call.room.base_url}/upload/{ticket}", "file_id": file_id}


def _complete_upload(call: Call) -> Json:
    """Share uploaded files. As with Slack the answer knows nothing of the message that shows them."""
    listed: Any = call.structure("files", "invalid_arguments")
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_FILES:
        raise ApiError("invalid_arguments")
    if any(not isinstance(entry, dict) or not isinstance(entry.get("id"), str) for entry in listed):
        raise ApiError("invalid_arguments")
    channel = _target(call)
    taken = [call.room.uploads.take(entry["id"], call.app.id) for entry in listed]
    if any(upload is None for upload in taken):
        raise ApiError("file_not_found")
    for entry, upload in zip(listed, taken, strict=True):
        if upload is not None:
            title = str(entry.get("title") or upload.name)
            kind = mimetypes.guess_type(upload.name)[0] or "text/plain"
            doc: Json = {"id": upload.file_id, "name": upload.name, "title": title, "mimetype": kind, "mode": "hosted"}
            doc |= {"size": len(upload.content), "user": call.app.bot_user, "is_external": False}
            call.room.store.put_file(doc, upload.content)
    if channel is not None:
        fields: Json = {**bot_fields(call.app, call.room.team["id"]), "text": call.text("initial_comment")}
        fields |= {"subtype": "file_share", "files": [entry["id"] for entry in listed], "upload": True}
        if call.text("thread_ts"):
            fields["thread_ts"] = call.text("thread_ts")
        call.room.posting.post(channel, fields)
    return {"files": [{"id": entry["id"], "title": str(entry.get("title") or "")} for entry in listed]}


def _target(call: Call) -> Any:
    """Return the channel to share in, None without one: then the files stay private."""
    wanted = call.text("channel_id")
    if not wanted:
        return None
    channel = Call(call.room, call.app, {"channel": wanted}).channel(writable=True)
    if not call.is_member(channel):
        raise ApiError("not_in_channel")
    thread = call.text("thread_ts")
    if thread and call.room.store.message(channel.id, thread) is None:
        raise ApiError("thread_not_found")
    return channel


METHODS = {
    "files.info": Method(_info, "files:read"),
    "files.getUploadURLExternal": Method(_get_upload_url, "files:write"),
    "files.completeUploadExternal": Method(_complete_upload, "files:write"),
}
