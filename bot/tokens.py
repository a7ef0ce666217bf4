"""Slack's secrets: read from the environment where they are used, and kept out of everything that is written."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.settings import SlackSettings
from core.errors import ChannelError

_SECRET = re.compile(r"\bx(?:ox[a-z]|app)[.-][A-Za-z0-9._%-]+|(?<=ticket=)[^&\s\"'<>]+", re.IGNORECASE)
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


@dataclass(frozen=True, repr=False)
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
        named = self._settings.model_dump()
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
        remedy = f"set it to the {what}{form} from the app's page `{page}` in the service's environment"
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
