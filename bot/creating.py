"""The form by which operators create a session: opened at once, checked while it is open, answered to its author.

A trigger lives three seconds, and a submission has to be acknowledged within three
(https://docs.slack.dev/surfaces/modals). So the form is opened without asking tmux, a submission is checked with what
is at hand, and the session is started after the form has closed.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.clients import ASYNC_FAILURES, Tokens, channel_error
from bot.directory import Directory
from bot.documents import Document, mapping_of, text_of
from bot.intake import AsyncDoor
from bot.payloads import COMMAND, KIND, Command
from bot.settings import SlackSettings
from bot.views import Draft, plain_view, told_view
from core.base.errors import ChannelError, CoreError
from core.base.values import dataclass
from core.model.channel import IncomingCreation

log = logging.getLogger(__name__)

CALLBACK = "the_loop_create"
_CHECK_SECONDS = 2.2  #: of the three, for all that is asked before a submission is acknowledged
_ASK_SECONDS = 1.0  #: for one question to Slack among them
_OPTION = 75  #: characters of an option's text
_ERROR = 300  #: characters of an error that stand below a field
_VALUE = "value"  #: the action of each field
#: Field of IncomingCreation -> the block that asks for it.
_BLOCKS = {"channel": "channel", "authorized_users": "people"}


@dataclass(frozen=True)
class Form:
    """What was filled in: `root` is what stands for one of the configured folders."""

    user: str
    team: str
    name: str
    harness: str
    root: str
    folder: str
    prompt: str
    channel: str
    people: tuple[str, ...]
    response_url: str  #: of the command that opened the form


def key_of(root: str) -> str:
    """Return what stands for a configured folder in the form: only the operator's file says which folders there are."""
    return hashlib.sha256(root.encode()).hexdigest()[:16]


def form_view(roots: Sequence[str], harnesses: Sequence[str], channel: str, response_url: str) -> dict[str, Any]:
    """Return the modal. `harnesses`: the default one first; `channel`: the configured one, "" where none is."""
    name = {"type": "plain_text_input", "max_length": 40, "focus_on_load": True, **_hinted("fix-login")}
    places = {"type": "conversations_select", "filter": {"include": ["public", "private"], "exclude_bot_users": True}}
    folder = {"type": "plain_text_input", "max_length": 1000, **_hinted("project/api")}
    brief = {"type": "plain_text_input", "multiline": True, "max_length": 3000}
    blocks = [
        _input("name", "Name", name, hint="1 to 40 of a-z, 0-9 and -, beginning with a letter or digit"),
        _input("harness", "Agent program", _select({one: one for one in harnesses[:100]})),
        _input("root", "Folder", _select({key_of(root): root for root in roots[:100]})),
        _input("folder", "Folder below it", folder, hint="Leave it empty to work in the folder itself", optional=True),
        _input("prompt", "Brief", brief, hint="What the session is for, in your words", optional=True),
        _input("channel", "Channel", {**places, **({"initial_conversation": channel} if channel else {})}),
        _input(
            "people",
            "Who may steer it",
            {"type": "multi_users_select"},
            hint="Leave it empty for everybody on channels.slack.authorizedUsers. You always may.",
            optional=True,
        ),
    ]
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": _plain("Create a session"),
        "submit": _plain("Create"),
        "close": _plain("Cancel"),
        "private_metadata": json.dumps({"response_url": response_url})[:3000],
        "blocks": blocks,
    }


def form_of(body: Document) -> Form:
    """Return what a `view_submission` payload brings; a field that is none of ours is empty."""
    view, user = mapping_of(body, "view"), mapping_of(body, "user")
    values = mapping_of(mapping_of(view, "state"), "values")

    def field(block: str) -> Document:
        return mapping_of(mapping_of(values, block), _VALUE)

    def chosen(block: str) -> str:
        return text_of(mapping_of(field(block), "selected_option"), "value")

    listed = field("people").get("selected_users")
    try:
        kept = json.loads(text_of(view, "private_metadata") or "{}")
    except ValueError:
        kept = {}
    return Form(
        user=text_of(user, "id"),
        team=text_of(user, "team_id"),
        name=text_of(field("name"), "value").strip(),
        harness=chosen("harness"),
        root=chosen("root"),
        folder=text_of(field("folder"), "value"),
        prompt=text_of(field("prompt"), "value"),
        channel=text_of(field("channel"), "selected_conversation"),
        people=tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else (),
        response_url=text_of(kept, "response_url") if isinstance(kept, Mapping) else "",
    )


class Creating:
    """Opens the form, checks what comes of it, and creates the session."""

    def __init__(
        self, client: AsyncWebClient, tokens: Tokens, door: AsyncDoor, directory: Directory, settings: SlackSettings
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._door = door
        self._directory = directory
        self._settings = settings

    async def open(self, asked: Command) -> Draft | None:
        """Show the form to an operator, and return what is said in its place where that cannot be done."""
        roots = self._settings.roots
        if not roots:
            return plain_view(
                "create: no folder is configured in which sessions may be created from Slack. To do: list such folders "
                "in channels.slack.roots, then restart the service."
            )
        harnesses = await self._door.harnesses()
        view = form_view(roots, harnesses, self._settings.channel, asked.response_url)
        try:
            await self._client.views_open(trigger_id=asked.trigger_id, view=view, token=self._tokens.bot().reveal())
        except ASYNC_FAILURES as error:
            problem = channel_error("views.open", "", error)
            log.warning("the form was not opened", extra={"reason": str(problem)})
            return plain_view(f"create: the form could not be opened ({problem}). To do: `{COMMAND} create` once more.")
        return None

    async def check(self, form: Form, author: str, author_name: str) -> tuple[IncomingCreation, Mapping[str, str]]:
        """Return what the form asks for, and what is wrong with it, by block. Raises TimeoutError."""
        async with asyncio.timeout(_CHECK_SECONDS):
            people, strangers = self._people(form, author)
            creation = IncomingCreation(
                channel_kind=KIND,
                author=author,
                author_name=author_name,
                name=form.name,
                harness=form.harness,
                root=next((root for root in self._settings.roots if key_of(root) == form.root), ""),
                folder=form.folder,
                prompt=form.prompt,
                channel="" if form.channel == self._settings.channel else form.channel,
                authorized_users=people,
            )
            found: dict[str, str] = {}
            if not creation.root:
                found["root"] = "This folder is no longer in channels.slack.roots. Choose another one."
            if strangers:
                found["people"] = f"Not on channels.slack.authorizedUsers: {', '.join(strangers)}. Take them out."
            if closed := await self._closed(form.channel):
                found["channel"] = closed
            for field, fault in (await self._door.faults(creation)).items():
                found.setdefault(_BLOCKS.get(field, field), fault)
            shown = await self._door.shown(lambda clean: {block: clean(fault) for block, fault in found.items()})
        return creation, {block: fault[:_ERROR] for block, fault in shown.items()}

    async def create(self, creation: IncomingCreation) -> Draft:
        """Create the session, and return what its author is told."""
        try:
            return told_view(await self._door.create(creation))
        except CoreError as error:
            return plain_view(f"{creation.name} was not created: {error}")

    def _people(self, form: Form, author: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """Return who may steer it, as the lists name them, and who of those chosen is on no list."""
        if not form.people:
            return None, ()
        listed = {entry.rpartition(":")[2]: entry for entry in self._settings.everybody()}
        strangers = tuple(one for one in form.people if one not in listed)
        named = dict.fromkeys([author, *(listed[one] for one in form.people if one in listed)])
        return tuple(named), strangers

    async def _closed(self, channel: str) -> str:
        """Return why the bot cannot post in a channel; "" where it can, and where Slack does not say in time."""
        if not channel:
            return "Choose a channel."
        try:
            found = await self._directory.conversation(channel, _ASK_SECONDS)
        except ChannelError as error:
            gone = error.reason == ChannelError.CHANNEL_GONE
            return "The bot may not see this channel. Invite it there: /invite @the-loop" if gone else ""
        if found.is_archived:
            return "This channel is archived. Choose another one."
        return "" if found.is_member else "The bot is not a member of this channel. Invite it there: /invite @the-loop"


def _input(
    block: str, label: str, element: Mapping[str, Any], *, hint: str = "", optional: bool = False
) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": block,
        "label": _plain(label),
        "element": {**element, "action_id": _VALUE},
        "optional": optional,
        **({"hint": _plain(hint)} if hint else {}),
    }


def _select(choices: Mapping[str, str]) -> dict[str, Any]:
    """Return a menu of these; the first is chosen. Of a text that is too long its end is shown."""
    options = [{"text": _plain(_end_of(text)), "value": value} for value, text in choices.items()]
    return {"type": "static_select", "options": options, "initial_option": options[0]}


def _end_of(text: str) -> str:
    return text if len(text) <= _OPTION else f"…{text[1 - _OPTION :]}"


def _plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}


def _hinted(text: str) -> dict[str, Any]:
    return {"placeholder": _plain(text)}
