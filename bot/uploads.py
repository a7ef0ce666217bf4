"""Uploads a text as a file into a thread: ask for an address, send the bytes there, share the file.

The three calls of https://docs.slack.dev/messaging/working-with-files. The message that shows the file appears later,
and its time stamp is in no answer; it is known by the file's name.
"""

import http.client
import urllib.request

from slack_sdk import WebClient

from bot import payloads
from bot.calls import answer
from bot.clients import CALL_SECONDS
from bot.errors import channel_error
from bot.settings import on_loopback, url_parts
from core.errors import ChannelError

_HOST = "slack.com"


def upload(client: WebClient, channel: str, thread: str, name: str, title: str, content: bytes) -> None:
    """Share the content as a file in the thread. Raises ChannelError; until the last call nothing can be seen."""
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
            files=[{"id": file_id, "title": title}], channel_id=channel, thread_ts=thread or None
        ),
    )


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
