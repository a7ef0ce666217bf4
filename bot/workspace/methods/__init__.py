"""The Web API's methods, one module per family; `METHODS` is all there are."""

from __future__ import annotations

from bot.workspace.methods import apps, assistant, auth, bots, chat, conversations, files, reactions, usergroups, users
from bot.workspace.methods.base import Method

METHODS: dict[str, Method] = {
    **apps.METHODS,
    **assistant.METHODS,
    **auth.METHODS,
    **bots.METHODS,
    **chat.METHODS,
    **conversations.METHODS,
    **files.METHODS,
    **reactions.METHODS,
    **usergroups.METHODS,
    **users.METHODS,
}
