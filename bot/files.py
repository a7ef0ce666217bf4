"""Fetch the files that come with messages. The message was committed before; core keeps the file.

The token goes to Slack's own hosts alone. Without a valid one Slack answers with a sign-in page and status 200, and
that must not reach the agent as the file.
"""

import asyncio
import logging
from collections.abc import Mapping
from urllib.parse import urljoin

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot import payloads
from bot.app import Self
from bot.clients import ASYNC_FAILURES, Tokens, channel_error, redact
from bot.documents import Document
from bot.intake import AsyncDoor
from bot.payloads import KIND
from bot.settings import SlackSettings, on_loopback, url_parts
from core.base.errors import ChannelError, CoreError, StoreBroken
from core.base.values import dataclass, replace
from core.model.message import Attachment, Fetch, Fetched

log = logging.getLogger(__name__)

SIZE_MAX = 20 * 1024 * 1024
_AT_ONCE = 3  #: messages
_REDIRECTS = 3
_CHUNK = 64 * 1024
_CANVAS = "application/vnd.slack-docs"
_PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class FilePace:
    """How long a message may wait for its files, in seconds."""

    attempts: int = 3
    first: float = 1.0
    most_pause: float = 30.0
    call: float = 30.0
    whole: float = 120.0  #: for all the files of a message
    written: float = 20.0  #: until what is said in a clip has been written down
    ask_again: float = 2.0  #: whether it has


class Unfetched(Exception):
    """A file could not be had, for the reason in the words. `retry_after`: None where no other attempt can help."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Files:
    """Fetches what committed messages wait for."""

    def __init__(
        self,
        settings: SlackSettings,
        tokens: Tokens,
        client: AsyncWebClient,
        own: Self,
        door: AsyncDoor,
        pace: FilePace,
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._client = client
        self._own = own
        self._door = door
        self._pace = pace
        self._asked = asyncio.Event()
        self._asked.set()  # an earlier process may have left some
        self._room = asyncio.Semaphore(_AT_ONCE)

    def ask(self) -> None:
        """Look soon: a message may have come with files."""
        self._asked.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        working: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self._asked.wait()
                self._asked.clear()
                working = {message: task for message, task in working.items() if not task.done()}
                for fetch in await self._to_fetch():
                    if fetch.message_id not in working:
                        working[fetch.message_id] = group.create_task(self._message(fetch))

    async def drain(self) -> None:
        """Settle what waits, once, for a channel that does not read: the failure is told, and the message goes on."""
        for fetch in await self._to_fetch():
            await self._message(fetch)

    async def _to_fetch(self) -> tuple[Fetch, ...]:
        try:
            return await self._door.to_fetch(KIND)
        except StoreBroken as error:
            log.warning("it cannot be seen which files are wanted", extra={"reason": str(error)})
            asyncio.get_running_loop().call_later(self._pace.call, self.ask)
            return ()

    async def _message(self, fetch: Fetch) -> None:
        async with self._room:
            deadline = asyncio.get_running_loop().time() + self._pace.whole
            done = [await self._file(fetch, position, file, deadline) for position, file in enumerate(fetch.files, 1)]
            try:
                await self._door.fetched(fetch.message_id, done)
            except StoreBroken as error:
                log.warning("a message's files cannot be told", extra={"reason": str(error)})
                asyncio.get_running_loop().call_later(self._pace.call, self.ask)

    async def _file(self, fetch: Fetch, position: int, file: Attachment, deadline: float) -> Fetched:
        """Fetch one file; every failure ends in words."""
        if file.problem:
            return Fetched(file, problem=file.problem)
        try:
            async with asyncio.timeout_at(deadline):
                whole, data = await self._tried(file)
                said = await self._said(whole) if whole.clip else ""
            path = await self._door.keep_file(fetch.message_id, position, whole.name, data)
        except TimeoutError:
            problem = f"Slack did not send it within {self._pace.whole:g} s"
        except (Unfetched, CoreError) as error:
            problem = redact(str(error))
        else:
            return Fetched(whole, path, len(data), said=said)
        log.warning("a file was not fetched", extra={"session": fetch.name, "reason": problem})
        return Fetched(file, problem=problem)

    async def _tried(self, file: Attachment) -> tuple[Attachment, bytes]:
        for attempt in range(1, self._pace.attempts + 1):
            try:
                whole = file if file.url else await self._described(file)
                return whole, await self._download(whole)
            except Unfetched as error:
                if error.retry_after is None or attempt == self._pace.attempts:
                    raise
                pause = max(error.retry_after, self._pace.first * 2 ** (attempt - 1))
                await asyncio.sleep(min(pause, self._pace.most_pause))
        raise Unfetched("it was not asked for")

    async def _described(self, file: Attachment) -> Attachment:
        """Return what files.info says of a file that came as an id alone, as in shared channels."""
        found = payloads.attachment(await self._info(file))
        if found.problem or not found.url:
            raise Unfetched(found.problem or "Slack names no address for it")
        return found

    async def _info(self, file: Attachment) -> Document:
        try:
            answer = await self._client.files_info(file=file.id, token=self._tokens.bot().reveal())
        except (*ASYNC_FAILURES, ChannelError) as error:
            problem = channel_error("files.info", file.id, error)
            raise Unfetched(problem.message, (problem.retry_after or 0.0) if problem.transient else None) from error
        return payloads.file_info(answer.data if isinstance(answer.data, dict) else {})

    async def _said(self, clip: Attachment) -> str:
        """Return what is said in a clip, as Slack has written it down; "" where it has not within the time.

        The message comes before that; what a file object holds of it then is often its beginning alone.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._pace.written
        try:
            told = payloads.spoken(await self._info(clip))
            while told.pending and loop.time() < end:
                await asyncio.sleep(self._pace.ask_again)
                told = payloads.spoken(await self._info(clip))
            if not told.more or not told.captions:
                return f"{told.words} …" if told.words and told.more else told.words
            captions = await self._download(replace(clip, url=told.captions, kind="text/vtt", size=0))
        except Unfetched as error:
            log.info("what is said in a clip is not known", extra={"reason": redact(str(error))})
            return ""
        return payloads.said(captions.decode(errors="replace"))

    # ------------------------------------------------------------ the download

    async def _download(self, file: Attachment) -> bytes:
        if file.size > SIZE_MAX:
            raise Unfetched(f"it has {file.size:,} bytes, and at most {SIZE_MAX:,} are fetched")
        timeout = aiohttp.ClientTimeout(total=self._pace.call)
        loopback = on_loopback(self._settings.api_url)
        try:
            async with aiohttp.ClientSession(timeout=timeout, trust_env=not loopback) as session:
                return await self._followed(session, file)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unfetched(f"Slack could not be reached: {type(error).__name__}", 0.0) from error

    async def _followed(self, session: aiohttp.ClientSession, file: Attachment) -> bytes:
        url = file.url
        for redirects in range(_REDIRECTS + 1):
            if not self._is_slack(url):
                raise Unfetched(f"it lies on {url_parts(url).hostname or 'no host'}, where the token must not go")
            headers = {"Authorization": f"Bearer {self._bot_token()}"}
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = _joined(url, answer.headers.get("Location", ""))
                    continue
                return await _body(answer, file, direct=not redirects)
        raise Unfetched("Slack redirects without an end")

    def _bot_token(self) -> str:
        try:
            return self._tokens.bot().reveal()
        except ChannelError as error:
            raise Unfetched(error.message) from error

    def _is_slack(self, url: str) -> bool:
        """Return whether the token may go there: Slack's file host, the workspace's own, or the loopback workspace."""
        return may_carry_the_token(url, self._settings.api_url, self._own.identity.url if self._own.identity else "")


def may_carry_the_token(url: str, api_url: str, workspace_url: str) -> bool:
    """Return whether a file's URL leads to a host of the Slack that is configured. Never raises."""
    parts, api, workspace = url_parts(url), url_parts(api_url), url_parts(workspace_url)
    try:
        port, api_port = parts.port, api.port
    except ValueError:
        return False
    if parts.username is not None or parts.password is not None:
        return False
    if on_loopback(api_url):
        return (parts.scheme, parts.hostname, port) == (api.scheme, api.hostname, api_port)
    hosts = {f"files.{(api.hostname or '').removeprefix('www.')}"}
    if workspace.scheme == "https" and (workspace.hostname or "").endswith(f".{api.hostname}"):
        hosts.add(workspace.hostname or "")
    return parts.scheme == "https" and parts.hostname in hosts and port in (None, 443)


def _joined(url: str, location: str) -> str:
    """Return where a redirect leads; an address that cannot be read leads to no host."""
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


async def _body(answer: aiohttp.ClientResponse, file: Attachment, *, direct: bool) -> bytes:
    """Return what was sent. Raises Unfetched.

    A canvas comes as HTML, in another size than stated; a sign-in page comes after a redirect.
    """
    if answer.status in _PASSING:
        raise Unfetched(f"Slack answered HTTP {answer.status}", _seconds(answer.headers))
    if answer.status != 200:
        raise Unfetched(f"Slack answered HTTP {answer.status}")
    data = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        data += chunk
        if len(data) > SIZE_MAX:
            raise Unfetched(f"it has more than {SIZE_MAX:,} bytes, the most that is taken")
    if file.kind == _CANVAS and direct:
        return bytes(data)
    if answer.content_type == "text/html" and (file.kind != "text/html" or len(data) != file.size):
        raise Unfetched("Slack answered with a sign-in page: the bot may not read it (scope files:read)")
    if file.size and len(data) != file.size:
        raise Unfetched(f"{len(data):,} bytes arrived, and Slack had stated {file.size:,}", 0.0)
    return bytes(data)


def _seconds(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
