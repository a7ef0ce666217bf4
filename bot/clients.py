"""Make slack_sdk's clients, read Slack's secrets, and translate Slack's refusals and network errors to ChannelError.

The clients have a deadline, do not retry by themselves, log little and use no proxy on loopback. Secrets are read from
the environment where they are used, and kept out of everything that is written.
"""

import dataclasses
import http.client
import logging
import re
import socket
import urllib.error
from collections.abc import Mapping
from typing import Any

import aiohttp
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.settings import SlackSettings, on_loopback
from core.base.errors import ChannelError
from core.base.values import dataclass

_SECRET = re.compile(r"x(?:ox[a-z]|app)[.-][A-Za-z0-9._%-]+|(?<=ticket=)[^&\s\"'<>]+", re.IGNORECASE)
HIDDEN = "(not shown)"


def redact(text: str) -> str:
    """Return the text without Slack tokens and without the tickets of Socket Mode URLs."""
    return _SECRET.sub(HIDDEN, text)


class Redacting(logging.Filter):
    """Takes secrets out of every record of a logger, its traceback included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record and let it pass."""
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


@dataclasses.dataclass(frozen=True, repr=False)
class Token:
    """A token and the variable it came from. Printing one shows the variable alone."""

    variable: str
    _value: str

    def reveal(self) -> str:
        """Return the secret, for the call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Token({self.variable})"


class Tokens:
    """The two tokens, looked up at each use and stored nowhere."""

    def __init__(self, settings: SlackSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def variables(self) -> tuple[str, ...]:
        """Return the names of the variables that hold secrets of Slack's."""
        named = self._settings._asdict()
        return tuple(value for key, value in named.items() if key.endswith("_env"))

    def bot(self) -> Token:
        """Return the bot token. Raises ChannelError naming the variable when it is missing or of another kind."""
        return self._token(self._settings.bot_token_env, "bot token", "xoxb-", "OAuth & Permissions")

    def app(self) -> Token:
        """Return the app-level token. Raises ChannelError naming the variable when it is missing or of another kind."""
        return self._token(self._settings.app_token_env, "app-level token", "xapp-", "Basic Information")

    def signing(self) -> Token:
        """Return the signing secret. Raises ChannelError naming the variable when it is missing."""
        return self._token(self._settings.signing_secret_env, "signing secret", "", "Basic Information")

    def _token(self, variable: str, what: str, prefix: str, page: str) -> Token:
        value = self._environ.get(variable, "").strip()
        form = f" ({prefix}…)" if prefix else ""
        remedy = (
            f"`the-loop slack setup` asks for it; or set it to the {what}{form} from the app's page `{page}` in the "
            "service's environment"
        )
        if not value:
            raise ChannelError(
                f"Slack's {what} is missing: the variable {variable} is not set",
                remedy,
                transient=False,
                reason=ChannelError.SHUT_OUT,
            )
        if not value.startswith(prefix):
            reason = f"the variable {variable} holds no {what}: its value does not begin with {prefix}"
            raise ChannelError(reason, remedy, transient=False, reason=ChannelError.SHUT_OUT)
        return Token(variable, value)


CALL_SECONDS = 15


def quiet_logger(name: str, level: int) -> logging.Logger:
    """Return a logger for the libraries: at DEBUG they print whole payloads and the ticket of a socket's URL."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not any(isinstance(found, Redacting) for found in logger.filters):
        logger.addFilter(Redacting())
    return logger


def web_client(settings: SlackSettings, token: Token) -> WebClient:
    """Return the client for threads. A failed call is told by what it raises, so it logs nothing itself."""
    client = WebClient(
        token=token.reveal(),
        base_url=settings.api_url,
        timeout=CALL_SECONDS,
        retry_handlers=[],
        logger=quiet_logger("bot.sdk.web", logging.CRITICAL),
    )
    if on_loopback(settings.api_url):
        client.proxy = None
    return client


def async_web_client(settings: SlackSettings) -> AsyncWebClient:
    """Return the client for the event loop, without a token: each call is given the one it needs."""
    client = AsyncWebClient(
        base_url=settings.api_url,
        timeout=CALL_SECONDS,
        retry_handlers=[],
        logger=quiet_logger("bot.sdk.web", logging.CRITICAL),
    )
    if on_loopback(settings.api_url):
        client.proxy = None
    return client


def response_client(url: str) -> AsyncWebhookClient:
    """Return the client of one response URL, by which a slash command is answered."""
    client = AsyncWebhookClient(
        url, timeout=CALL_SECONDS, retry_handlers=[], logger=quiet_logger("bot.sdk.web", logging.CRITICAL)
    )
    if on_loopback(url):
        client.proxy = None
    return client


#: The network's ways to fail a call; slack_sdk's own are turned into one of these or SlackClientError.
SYNC_FAILURES = (SlackClientError, OSError, http.client.HTTPException)
ASYNC_FAILURES = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError)

_INVITE = "invite the bot there: /invite @the-loop"
_REINSTALL = "reinstall the app from the manifest (`the-loop slack manifest`) and put its token into the variable"
_NEW_TOKEN = "take the current token from the app's page and put it into the variable, then restart the service"
_ANNOUNCE = "the next start makes a new thread"
_CHANNEL_KEY = "set channels.slack.channel (or the session's slack.channel) to the channel's id"

#: Error code -> (reason, remedy) for what a repeated call cannot mend.
PERMANENT: Mapping[str, tuple[str, str]] = {
    "channel_not_found": ("there is no such channel, or the bot may not see it", f"{_CHANNEL_KEY}; {_INVITE}"),
    "not_in_channel": ("the bot is not a member of the channel", _INVITE),
    "is_archived": ("the channel is archived", f"unarchive it, or {_CHANNEL_KEY}"),
    "restricted_action": ("the workspace does not let this app post there", "ask a workspace admin to allow it"),
    "restricted_action_read_only_channel": ("the channel is read-only", "ask a workspace admin to allow the bot"),
    "restricted_action_thread_only_channel": ("only threads are allowed there", _CHANNEL_KEY),
    "restricted_action_thread_locked": ("the thread is locked", _ANNOUNCE),
    "ekm_access_denied": ("the workspace's admins have suspended posting", "ask a workspace admin"),
    "team_access_not_granted": ("the token has no access to the workspace", _REINSTALL),
    "access_denied": ("access is denied", _REINSTALL),
    "no_permission": ("the token may not do this", _REINSTALL),
    "missing_scope": ("the token lacks a scope", _REINSTALL),
    "not_allowed_token_type": ("this is the other kind of token", "bot token: xoxb-…, app-level token: xapp-…"),
    "invalid_auth": ("the token is not valid, or this address may not use it", _NEW_TOKEN),
    "not_authed": ("no token was sent", _NEW_TOKEN),
    "token_revoked": ("the token was revoked", _REINSTALL),
    "token_expired": ("the token has expired", f"switch token rotation off; {_REINSTALL}"),
    "account_inactive": ("the app was removed from the workspace, or its bot user deactivated", _REINSTALL),
    "app_not_installed": ("the app is not installed in the workspace", _REINSTALL),
    "org_login_required": (
        "the workspace is being moved into an organization",
        "wait for it, then restart the service",
    ),
    "socket_mode_not_enabled": (
        "Socket Mode is off",
        "switch it on (page `Socket Mode` of the app), restart the service",
    ),
    "link_disabled": (
        "Socket Mode was switched off",
        "switch it on (page `Socket Mode` of the app), restart the service",
    ),
    "forbidden_team": ("the app may not be used in this workspace", "ask a workspace admin"),
    "thread_not_found": ("the thread is gone", _ANNOUNCE),
    "message_not_found": ("the message is gone", _ANNOUNCE),
    "cant_update_message": ("this message cannot be edited by the bot", _ANNOUNCE),
    "edit_window_closed": ("the workspace no longer lets this message be edited", _ANNOUNCE),
    "cannot_reply_to_message": ("that kind of message takes no replies", _ANNOUNCE),
    "message_not_in_streaming_state": ("the message is not being written any more", "the answer is posted by itself"),
    "stopped_by_user": ("a person has stopped the message", "the answer is posted by itself"),
    "channel_type_not_supported": ("no streams are possible in that kind of channel", "the answer is posted by itself"),
    "cant_delete_message": ("the bot cannot delete this message", "delete it by hand"),
    "msg_too_long": ("the text is longer than Slack takes", "the whole text is in the session's pane"),
    "no_text": ("there is no text", "report this: the-loop must not post an empty text"),
    "user_not_in_channel": ("the member is not in the channel", "nothing needs to be done"),
    "user_not_found": ("there is no such member", "correct channels.slack.authorizedUsers"),
    "unknown_method": ("the server at channels.slack.apiUrl does not know the method", "correct channels.slack.apiUrl"),
    "metadata_too_large": ("the message's metadata is too large", "report this: the-loop keeps it small"),
    "invalid_metadata_format": ("the message's metadata is malformed", "report this: the-loop makes it"),
}
#: Error code -> what core makes of it; any other is its own reason.
REASONS: Mapping[str, str] = {
    "channel_not_found": ChannelError.CHANNEL_GONE,
    "is_archived": ChannelError.CHANNEL_GONE,
    "not_in_channel": ChannelError.NOT_MEMBER,
    "thread_not_found": ChannelError.THREAD_GONE,
    "message_not_found": ChannelError.THREAD_GONE,
    "cannot_reply_to_message": ChannelError.THREAD_GONE,
    "restricted_action_thread_locked": ChannelError.THREAD_GONE,
    **dict.fromkeys(
        ("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"), ChannelError.SHUT_OUT
    ),
    **dict.fromkeys(
        ("missing_scope", "unknown_method", "no_permission", "access_denied", "not_allowed_token_type"),
        ChannelError.NOT_ALLOWED,
    ),
}
#: Slack says itself that these pass.
PASSING_CODES = frozenset({"team_added_to_org"})
#: Slack may have done what was asked although it says that it failed.
UNCLEAR_CODES = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
_CODE = re.compile(r"[a-z][a-z0-9_]{1,80}")


@dataclass(frozen=True)
class Answer:
    """What can be read off a refused call: the error code ("" if the body was none of Slack's), status, headers."""

    code: str
    status: int
    retry_after: float | None
    needed: str  #: the scope that is missing, where Slack names it


def answer_of(error: SlackApiError) -> Answer:
    """Return what a refusal says; never raises, whatever came back."""
    response: Any = error.response
    data = getattr(response, "data", response)
    body: Mapping[str, Any] = data if isinstance(data, dict) else {}
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    code, needed = body.get("error"), body.get("needed")
    return Answer(
        code=code if isinstance(code, str) and _CODE.fullmatch(code) else "",
        status=status if isinstance(status, int) else 200,
        retry_after=_seconds(header(response, "retry-after") or ""),
        needed=needed if isinstance(needed, str) else "",
    )


def header(response: Any, name: str) -> str | None:
    """Return a header of a response of slack_sdk, whatever its case; None where it has none of that name."""
    headers = getattr(response, "headers", None)
    if not isinstance(headers, Mapping):
        return None
    return next((str(value) for key, value in headers.items() if str(key).lower() == name), None)


def channel_error(method: str, where: str, error: Exception) -> ChannelError:
    """Return what a failed call means. `where` names what it was about: a channel, a variable, the app."""
    about = f"Slack, {method}" + (f" ({where})" if where else "")
    if isinstance(error, ChannelError):
        return error
    if isinstance(error, SlackApiError):
        return _refusal(about, answer_of(error))
    unreached = _unreached(error)
    reason = redact(str(error)) or type(error).__name__
    state = "could not be reached" if unreached else "gave no answer"
    remedy = "wait until the network is back; if that does not help, check channels.slack.apiUrl"
    return ChannelError(f"{about}: {state}: {reason}", remedy, transient=True, unclear=not unreached)


def beyond_waiting(error: Exception) -> bool:
    """Return whether Slack refused with a known code that waiting cannot mend, or our own side lacks something."""
    if isinstance(error, SlackApiError):
        return answer_of(error).code in PERMANENT
    return isinstance(error, ChannelError) and not error.transient


def _refusal(about: str, answer: Answer) -> ChannelError:
    if answer.status == 429 or answer.code in ("ratelimited", "rate_limited"):
        wait = answer.retry_after if answer.retry_after is not None else 30.0
        message = f"{about}: too many calls, Slack asks for a pause of {wait:g} s"
        return ChannelError(message, "it is sent after the pause", transient=True, retry_after=wait)
    if answer.status >= 500 or not answer.code:
        message = f"{about}: no answer that can be read (HTTP {answer.status})"
        return ChannelError(message, "it is tried again", transient=True, retry_after=answer.retry_after, unclear=True)
    kind = REASONS.get(answer.code, answer.code)
    if answer.code in PERMANENT:
        reason, remedy = PERMANENT[answer.code]
        needed = f" {answer.needed!r}" if answer.needed else ""
        return ChannelError(f"{about}: {answer.code}: {reason}{needed}", remedy, transient=False, reason=kind)
    if answer.code in UNCLEAR_CODES:
        message = f"{about}: {answer.code}: it may have been done in part"
        return ChannelError(message, "it is tried again", transient=True, unclear=True)
    if answer.code in PASSING_CODES:
        return ChannelError(f"{about}: {answer.code}", "it is tried again", transient=True)
    remedy = "look the code up on Slack's page of the method"
    return ChannelError(f"{about}: {answer.code}", remedy, transient=False, reason=kind)


def _unreached(error: Exception) -> bool:
    """Return whether the request never left: nobody listens, or the name is unknown."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(cause, ConnectionRefusedError | socket.gaierror | aiohttp.ClientConnectorError)


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d+)?", text) else None
