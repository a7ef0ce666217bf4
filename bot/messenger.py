"""Post, edit, mark and find messages, for callers in threads. Nothing is retried here: the outbox decides that.

Secrets are removed from everything that is sent. Answers are Markdown; our own texts are sent as they are, with names
in place of members' ids.

A file is uploaded by the three calls of https://docs.slack.dev/messaging/working-with-files. The message that shows it
appears later, and no answer holds its time stamp, so it is recognised by the file's name.
"""

import http.client
import logging
import threading
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from slack_sdk import WebClient
from slack_sdk.web.slack_response import SlackResponse

from bot import payloads
from bot.buttons import SECTION_MAX, button_blocks
from bot.clients import CALL_SECONDS, Tokens, channel_error, web_client
from bot.directory import Naming, answer, order
from bot.documents import Document
from bot.live import chunks
from bot.markdown import dated, file_name, fitted, is_file_of, wire
from bot.payloads import Identity, Post
from bot.settings import SlackSettings, on_loopback, url_parts
from core.base.clock import Clock, Deadline
from core.base.errors import ChannelError
from core.base.files import read_plain
from core.base.names import standing_ref
from core.base.redaction import Redactor
from core.base.values import replace
from core.model.asking import Button, Role
from core.model.channel import Posted
from core.model.live import LiveRow, LiveShown
from core.model.posts import Mark, NewPost, OutboundKind, OwnPost, ThreadSeen

_HOST = "slack.com"


def upload(client: WebClient, channel: str, thread: str, name: str, title: str, content: bytes) -> str:
    """Share the content as a file in the thread, and return its id; without a channel nobody but the app sees it.

    Raises ChannelError; until the last call nothing can be seen.
    """
    granted = answer(
        "files.getUploadURLExternal",
        channel,
        lambda: client.files_getUploadURLExternal(filename=name, length=len(content)),
    )
    url, file_id = payloads.upload_address(granted)
    _send(_checked(url, client.base_url), content)
    answer(
        "files.completeUploadExternal",
        channel,
        lambda: client.files_completeUploadExternal(
            files=[{"id": file_id, "title": title}], channel_id=channel or None, thread_ts=thread or None
        ),
    )
    return file_id


def _checked(url: str, base_url: str) -> str:
    """Return the address if it is Slack's own, or this machine's where the workspace is: nobody else gets the text."""
    parts = url_parts(url)
    host = parts.hostname or ""
    slack = parts.scheme == "https" and (host == _HOST or host.endswith(f".{_HOST}") or host.endswith(".slack-gov.com"))
    if slack or (on_loopback(base_url) and on_loopback(url)):
        return url
    raise ChannelError(f"Slack named {host or 'no host'} to upload to, which is not its own", transient=False)


def _send(url: str, content: bytes) -> None:
    """Send the bytes. The address holds a ticket, so that it is in no message; none of this can be seen by anybody."""
    request = urllib.request.Request(url, data=content, method="POST")
    request.add_header("Content-Type", "application/octet-stream")
    handlers = [urllib.request.ProxyHandler({})] if on_loopback(url) else []
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=CALL_SECONDS) as response:
            response.read(1024)
    except (OSError, http.client.HTTPException) as error:
        found = channel_error("file upload", "", error)
        raise ChannelError(found.message, found.remedy, transient=True) from error


_LOG = logging.getLogger(__name__)

TEXT_MAX = 38_000  #: chat.postMessage cuts silently above 40,000
UPDATE_MAX = 3_800  #: chat.update refuses above some 4,000
_PROBE = "the-loop tests whether messages come back. This one is removed at once."
_PAGE = 200
_PROCESSED_SECONDS, _POLL_SECONDS = 10.0, 0.3  #: for a file that has been uploaded
_MOST_BYTES = 1 << 26  #: of a file; what an agent may attach is smaller
_MARKDOWN = frozenset(
    {
        OutboundKind.ASKED,
        OutboundKind.ANSWER,
        OutboundKind.PART,
        OutboundKind.PROGRESS,
        OutboundKind.REQUEST,
        OutboundKind.POST,
    }
)
REACTIONS = {
    Mark.TAKEN: "eyes",
    Mark.TYPED: "keyboard",
    Mark.DONE: "white_check_mark",
    Mark.REFUSED: "x",
    Mark.UNKNOWN: "question",
}
_PAGES = 50  #: 10,000 messages; beyond them "not found" would be a guess


class Messenger:
    """The bot's voice. Its methods may be called from any thread."""

    def __init__(
        self, settings: SlackSettings, tokens: Tokens, redactor: Redactor, naming: Naming, clock: Clock
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._redactor = redactor
        self._naming = naming
        self._clock = clock
        self._status_works = True
        self._identity: Identity | None = None
        self._lock = threading.Lock()

    def redact_with(self, redactor: Redactor) -> None:
        """Take secrets out by this redactor from now on."""
        self._redactor = redactor

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post into the thread, or into the channel where `thread` is "". Raises ChannelError."""
        if not channel:
            reason, remedy = "Slack: there is no channel to post in", "set channels.slack.channel to its id (C…)"
            raise ChannelError(reason, remedy, transient=False)
        client = self._client()
        if post.kind in (OutboundKind.FILE, OutboundKind.ATTACHMENT):
            return self._uploaded(client, post, channel, thread)
        if post.only_for:
            return self._whispered(client, post, channel, thread)
        buttons = self._buttons(post)
        text = self._text(post, SECTION_MAX if buttons else TEXT_MAX)
        return self._posted(
            "chat.postMessage",
            channel,
            lambda: client.chat_postMessage(
                channel=channel,
                thread_ts=thread or None,
                text=text,
                blocks=button_blocks(text, buttons, post.name) if buttons else None,
                metadata=_metadata(post),
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                parse="none",
            ),
        )

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Replace the text of a message. Raises ChannelError."""
        client, buttons = self._client(), self._buttons(post)
        text = self._text(post, SECTION_MAX if buttons else UPDATE_MAX)
        return self._posted(
            "chat.update",
            channel,
            lambda: client.chat_update(
                channel=channel,
                ts=ts,
                text=text,
                # without any, those that stood there go
                blocks=button_blocks(text, buttons, post.name) if buttons else None,
                metadata=_metadata(post),
                link_names=False,
                parse="none",
            ),
        )

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Add the mark's reaction and take the others back. Raises ChannelError."""
        client = self._client()
        place = {"channel": channel, "timestamp": ts}
        add = partial(client.reactions_add, name=REACTIONS[mark], **place)
        _reacted("reactions.add", channel, "already_reacted", add)
        for other in instead_of:
            remove = partial(client.reactions_remove, name=REACTIONS[other], **place)
            _reacted("reactions.remove", channel, "no_reaction", remove)

    def status(self, channel: str, thread: str, text: str) -> None:
        """Show the text below the thread for two minutes; "" takes it away. Where Slack does not know how: nothing."""
        if not self._status_works:
            return
        try:
            client = self._client()
            answer(
                "assistant.threads.setStatus",
                channel,
                lambda: client.assistant_threads_setStatus(
                    channel_id=channel, thread_ts=thread, status=self._redactor.redact(text)
                ),
            )
        except ChannelError as error:
            self._status_works = error.reason != ChannelError.NOT_ALLOWED
            level = logging.DEBUG if self._status_works else logging.WARNING
            _LOG.log(level, "status not shown", extra={"reason": str(error)})

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Return where the post with that id is, None if it is nowhere in the thread (or channel).

        A file is known by its name, whose message carries no id. Only the bot's own messages count, since anybody can
        write such metadata. Raises ChannelError.
        """
        own = self.identity()
        for found in self._messages(channel, thread):
            named = found.post_id == post_id or any(is_file_of(post_id, name) for name in found.files)
            if found.bot == own.bot and named:
                return Posted(own.team, channel, found.ts)
        return None

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Read a thread to its end, and return the bot's own posts in it. Raises ChannelError."""
        own, latest = self.identity(), thread
        posts: list[OwnPost] = []
        for page in self._pages(channel, thread):
            stamps = [payloads.ts_of(message) for message in payloads.messages(page)]
            latest = max([latest, *filter(None, stamps)], key=order)
            found = (post for post in payloads.posts(page) if post.bot == own.bot)
            posts += [OwnPost(post.ts, post.post_id, post.kind, post.ref, post.uid) for post in found]
        return ThreadSeen(own.team, channel, thread, latest, tuple(posts))

    def begin_live(self, row: LiveRow) -> Posted:
        """Start a stream in the thread, whose reader is who asked. Raises ChannelError."""
        client, own = self._client(), self.identity()
        team, _, reader = row.reader.rpartition(":")
        return self._posted(
            "chat.startStream",
            row.channel,
            lambda: client.chat_startStream(
                channel=row.channel,
                thread_ts=row.thread,
                recipient_user_id=reader,
                recipient_team_id=team or own.team,
                task_display_mode="plan",
                chunks=self._chunks(row, row.shown, ""),
            ),
        )

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Append to the stream. Raises ChannelError."""
        client = self._client()
        told = self._chunks(row, change, text)
        call = partial(client.chat_appendStream, channel=row.channel, ts=row.ts, chunks=told)
        answer("chat.appendStream", row.channel, call)

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """Append to the stream and stop it; the post's id becomes metadata of the message. Raises ChannelError."""
        client = self._client()
        call = partial(
            client.chat_stopStream,
            channel=row.channel,
            ts=row.ts,
            chunks=self._chunks(row, change, text) or None,
            metadata=_metadata(post) if post is not None else None,
        )
        return self._posted("chat.stopStream", row.channel, call)

    def remove_live(self, row: LiveRow) -> None:
        """Stop the stream, which else could not be deleted, and delete its message. Raises ChannelError."""
        client = self._client()
        stop = partial(client.chat_stopStream, channel=row.channel, ts=row.ts)
        delete = partial(client.chat_delete, channel=row.channel, ts=row.ts)
        for method, call in (("chat.stopStream", stop), ("chat.delete", delete)):
            try:
                answer(method, row.channel, call)
            except ChannelError as error:
                if error.reason == ChannelError.THREAD_GONE:
                    return
                if error.reason not in ("message_not_in_streaming_state", "stopped_by_user"):
                    raise

    def find_live(self, row: LiveRow) -> Posted | None:
        """Return where the stream is whose tasks carry the row's id. Raises ChannelError."""
        own = self.identity()
        for found in self._messages(row.channel, row.thread):
            if found.bot == own.bot and found.live == row.id:
                return Posted(own.team, row.channel, found.ts)
        return None

    def _chunks(self, row: LiveRow, change: LiveShown, text: str) -> list[dict[str, Any]]:
        return chunks(row.id, change, self._redactor.redact(text))

    def link(self, channel: str, thread: str) -> str:
        """Return the address of a thread, made as Slack makes permalinks; "" before the workspace's own is known.

        https://docs.slack.dev/reference/methods/chat.getPermalink shows its form.
        """
        own = self._identity
        return f"{own.url.rstrip('/')}/archives/{channel}/p{thread.replace('.', '')}" if own and own.url else ""

    def identity(self) -> Identity:
        """Return who the bot is; asked once. Raises ChannelError."""
        with self._lock:
            if self._identity is None:
                client = self._client()
                found = payloads.identity(answer("auth.test", "", client.auth_test))
                if found is None:
                    raise ChannelError("Slack, auth.test: the token belongs to no bot", transient=False)
                self._identity = found
            return self._identity

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post a message that holds no text of anybody's, and return what removes it. Both raise ChannelError."""
        client = self._client()
        posted = self._posted(
            "chat.postMessage", channel, lambda: client.chat_postMessage(channel=channel, text=_PROBE)
        )

        def remove() -> None:
            answer("chat.delete", posted.channel, lambda: client.chat_delete(channel=posted.channel, ts=posted.ts))

        return remove

    def _posted(self, method: str, channel: str, call: Callable[[], SlackResponse]) -> Posted:
        own = self.identity()
        place, ts = payloads.posted(answer(method, channel, call))
        return Posted(own.team, place or channel, ts, self._link(own, place or channel, ts))

    def _link(self, own: Identity, channel: str, ts: str) -> str:
        """Return the message's permalink as `chat.getPermalink` answers it, without a call for each message.

        A workspace on this machine, as the demonstration's, calls itself by a name that leads elsewhere: "".
        """
        if on_loopback(self._settings.api_url) or not own.url or not ts:
            return ""
        return f"{own.url.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}"

    def _whispered(self, client: WebClient, post: NewPost, channel: str, thread: str) -> Posted:
        """Show a post to one member alone. Slack keeps none of it: nobody can find it again."""
        text = self._text(post, TEXT_MAX)
        call = partial(
            client.chat_postEphemeral, channel=channel, user=post.only_for, thread_ts=thread or None, text=text,
            link_names=False, parse="none",
        )  # fmt: skip
        found = answer("chat.postEphemeral", channel, call)
        return Posted(self.identity().team, channel, payloads.whispered(found))

    def _uploaded(self, client: WebClient, post: NewPost, channel: str, thread: str) -> Posted:
        own, redact, now = self.identity(), self._redactor.redact, self._clock.now()
        if post.path:
            path = Path(post.path)
            title, content = redact(post.text), self._file(path)
            name = file_name(replace(post, path=redact(path.name)), now)
        else:
            title, content = f"{post.name}: the whole answer", redact(post.text).encode()
            name = file_name(post, now)
        upload(client, channel, thread, name, title, content)
        return Posted(own.team, channel, "")

    def keep(self, name: str, content: bytes) -> str:
        """Upload a file that is shared nowhere, and return its id: an image block shows it. Raises ChannelError.

        Slack looks at a file after it has said that the upload is complete, and refuses blocks with it until then: its
        type is told from then on (https://github.com/slackapi/slack-github-action/issues/413).
        """
        client = self._client()
        file_id = upload(client, "", "", name, name, content)
        deadline = Deadline(self._clock, _PROCESSED_SECONDS)
        with suppress(ChannelError):  # without the scope it is not known: whoever shows it tries more than once
            while not deadline.passed():
                if payloads.is_processed(answer("files.info", "", lambda: client.files_info(file=file_id))):
                    break
                self._clock.pause(_POLL_SECONDS)
        return file_id

    def _buttons(self, post: NewPost) -> tuple[Button, ...]:
        """Return the post's buttons without those that nobody may press; a label may be an agent's words."""
        shown = (button for button in post.buttons if button.role is not Role.OPERATOR or self._settings.operators)
        return tuple(replace(button, label=self._redactor.redact(button.label)) for button in shown)

    def _text(self, post: NewPost, limit: int) -> str:
        """Return what is shown, with times as dates of Slack's in our own words: never in an agent's."""
        if post.kind not in _MARKDOWN:
            shown = fitted(self._redactor.redact(self._naming.named(post.text)), limit)
            ours = dated(shown)
        else:
            text = self._redactor.redact(post.text)
            shown = wire(replace(post, text=text))
            if len(shown) > limit:
                return fitted(text, limit)
            head, newline, last = shown.rpartition("\n")
            ours = f"{head}{newline}{dated(last)}" if post.kind is OutboundKind.REQUEST else shown  # how it ended
        return ours if len(ours) <= limit else shown

    def _file(self, path: Path) -> bytes:
        """Return what is attached; of a text the secrets are taken out, as of every other. Raises ChannelError."""
        try:
            content = read_plain(path, _MOST_BYTES)
        except OSError as error:
            reason = f"the file {self._redactor.redact(path.name)} cannot be read: {error.strerror}"
            raise ChannelError(reason, "post it again", transient=False) from error
        redacted = self._redactor.redact_file(content)
        if redacted is None:
            named = self._redactor.redact(path.name)
            reason = f"the file {named} contains a secret that cannot be removed, because it is not a text file"
            raise ChannelError(reason, "post the file without the secret, or as text", transient=False)
        return redacted

    def _messages(self, channel: str, thread: str) -> Iterator[Post]:
        for page in self._pages(channel, thread):
            yield from payloads.posts(page)

    def _pages(self, channel: str, thread: str) -> Iterator[Document]:
        client, cursor = self._client(), ""
        method = "conversations.replies" if thread else "conversations.history"
        for _ in range(_PAGES):
            arguments: dict[str, Any] = {"channel": channel, "limit": _PAGE, "include_all_metadata": True}
            arguments |= {"cursor": cursor} if cursor else {}
            page = answer(method, channel, partial(_page, client, thread, arguments))
            yield page
            cursor = payloads.next_cursor(page)
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
    ref = standing_ref(post.name) if post.name else ""
    return payloads.metadata(post.id, post.kind.value, ref, post.uid)


def _reacted(method: str, channel: str, already: str, call: Callable[[], SlackResponse]) -> None:
    """Do it; what is so already is well."""
    try:
        answer(method, channel, call)
    except ChannelError as error:
        if error.reason != already:
            raise
