"""usergroups.list."""

from __future__ import annotations

from bot.workspace.errors import Json
from bot.workspace.methods.base import Call, Method


def _list(call: Call) -> Json:
    """Answer the groups that are not disabled, unless `include_disabled` asks for those as well."""
    groups = call.room.store.groups()
    return {"usergroups": [group for group in groups if call.flag("include_disabled") or not group["date_delete"]]}


METHODS = {"usergroups.list": Method(_list, "usergroups:read")}
