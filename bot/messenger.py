"""Posts, edits and finds messages, for callers in threads. Nothing is retried here: the outbox decides on that."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from slack_sdk import WebClient
from slack_sdk.web.slack_response import SlackResponse

from bot import payloads
from bot.clients import web_client
from bot.errors import SYNC_FAILURES, channel_error
from bot.mrkdwn import fitted
from bot.payloads import Document, Identity, Post
from bot.settings import SlackSettings
from bot.tokens import Tokens
from core.errors import ChannelError
from core.names import standing_ref
from core.ports import NewPost, Posted

TEXT_MAX = 38_000  #: chat.postMessage cuts silently above 40,000
UPDATE_MAX = 3_800  #: chat.update refuses above some 4,000
_PAGE = 200
_PAGES = 50  #: 10,000 messages; beyond them "not found" would be a guess


class Messenger:
    """The bot's voice. Its methods may be called from any thread."""

    def __init__(self, settings: SlackSettings, tokens: Tokens) -> None:
        self._settings = settings
        self._tokens = tokens
        self._identity: Identity | None = None
        self._lock = threading.Lock()

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post into the thread, or into the channel where `thread` is "". Raises ChannelError."""
        if not channel:
            reason, remedy = "Slack: there is no channel to post in", "set channels.slack.channel to its id (C…)"
            raise ChannelError(reason, remedy, transient=False)
        client = self._client()
        return self._posted(
            "chat.postMessage",
            channel,
            lambda: client.chat_postMessage(
                channel=channel,
                thread_ts=thread or None,
                text=fitted(post.text, TEXT_MAX),
                metadata=_metadata(post),
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
            ),
        )

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Replace the text of a message. Raises ChannelError."""
        client = self._client()
        return self._posted(
            "chat.update",
            channel,
            lambda: client.chat_update(
                channel=channel, ts=ts, text=fitted(post.text, UPDATE_MAX), metadata=_metadata(post), link_names=False
            ),
        )

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Return where the post with that id is, None if it is nowhere in the thread (or channel).

        Only the bot's own messages count, since anybody can write such metadata. Raises ChannelError.
        """
        own = self.identity()
        for found in self._messages(channel, thread):
            if found.bot == own.bot and found.post_id == post_id:
                return Posted(own.team, channel, found.ts)
        return None

    def identity(self) -> Identity:
        """Return who the bot is; asked once. Raises ChannelError."""
        with self._lock:
            if self._identity is None:
                client = self._client()
                found = payloads.identity(_answer("auth.test", "", client.auth_test))
                if found is None:
                    raise ChannelError("Slack, auth.test: the token belongs to no bot", transient=False)
                self._identity = found
            return self._identity

    def _posted(self, method: str, channel: str, call: Callable[[], SlackResponse]) -> Posted:
        own = self.identity()
        place, ts = payloads.posted(_answer(method, channel, call))
        return Posted(own.team, place or channel, ts)

    def _messages(self, channel: str, thread: str) -> Iterator[Post]:
        client, cursor = self._client(), ""
        method = "conversations.replies" if thread else "conversations.history"
        for _ in range(_PAGES):
            arguments: dict[str, Any] = {"channel": channel, "limit": _PAGE, "include_all_metadata": True}
            arguments |= {"cursor": cursor} if cursor else {}
            answer = _answer(method, channel, partial(_page, client, thread, arguments))
            yield from payloads.posts(answer)
            cursor = payloads.next_cursor(answer)
            if not cursor:
                return
        raise ChannelError(
            f"Slack, {method} ({channel}): the post is not among the latest {_PAGE * _PAGES:,} messages",
            "look for it in the channel by hand",
            transient=False,
        )

    def _client(self) -> WebClient:
        return web_client(self._settings, self._tokens.bot())


def _page(client: WebClient, thread: str, arguments: dict[str, Any]) -> SlackResponse:
    if thread:
        return client.conversations_replies(ts=thread, **arguments)
    return client.conversations_history(**arguments)


def _metadata(post: NewPost) -> dict[str, Any]:
    return payloads.metadata(post.id, post.kind.value, standing_ref(post.name))


def _answer(method: str, where: str, call: Callable[[], SlackResponse]) -> Document:
    try:
        answer = call()
    except SYNC_FAILURES as error:
        raise channel_error(method, where, error) from error
    return answer.data if isinstance(answer.data, dict) else {}
