"""Ids of members into names, in texts of ours that people read. What is kept carries the ids."""

import logging
import re
from functools import partial

from bot import payloads
from bot.calls import answer
from bot.clients import web_client
from bot.payloads import KIND
from bot.settings import SlackSettings
from bot.tokens import Tokens
from core.clock import Clock
from core.errors import ChannelError

log = logging.getLogger(__name__)
_ACTOR = re.compile(rf"\b{KIND}:(?:[TE][A-Z0-9]+:)?([UW][A-Z0-9]{{2,}})\b")
_ASK_SECONDS = 2
_KEEP_SECONDS, _KEEP_FAILURE_SECONDS = 600.0, 10.0


class Naming:
    """Asks users.info and remembers answers. Its methods may be called from any thread that may wait."""

    def __init__(self, settings: SlackSettings, tokens: Tokens, clock: Clock) -> None:
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}  #: member -> until when that counts, name or ""

    def named(self, text: str) -> str:
        """Return the text with a name for every `slack:U…`. Whoever Slack does not name at once keeps the id."""
        return _ACTOR.sub(lambda found: self._name(found[1]) or found[0], text)

    def _name(self, member: str) -> str:
        now = self._clock.monotonic()
        until, name = self._known.get(member, (now, ""))
        if now >= until:
            try:
                name, keep = self._ask(member), _KEEP_SECONDS
            except ChannelError as error:
                log.info("a member is called by the id", extra={"author": member, "reason": str(error)})
                keep = _KEEP_FAILURE_SECONDS
            self._known[member] = (now + keep, name)
        return name

    def _ask(self, member: str) -> str:
        client = web_client(self._settings, self._tokens.bot())
        client.timeout = _ASK_SECONDS
        person = payloads.person(answer("users.info", member, partial(client.users_info, user=member)))
        return person.name if person else ""
