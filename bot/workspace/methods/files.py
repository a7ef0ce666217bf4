"""files.info."""

from __future__ import annotations

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method
from bot.workspace.shapes import file_view


def _info(call: Call) -> Json:
    found = call.room.store.file(call.text("file"))
    if found is None:
        raise ApiError("file_not_found")
    return {"file": file_view(found[0], call.room.base_url)}


METHODS = {"files.info": Method(_info, "files:read")}
