"""Who is logged in to the page: links that are good for one login, and the browsers that came by one. No web framework.

A browser holds two secrets: a cookie, which no script can read, and a key in the storage of its origin, which it sends
as a header. A cookie alone would not do: a browser sends it to every port of a host (RFC 6265, section 8.5), so to the
servers of other users of this machine too. On the disk are their hashes only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from core.base.clock import Clock, from_iso, iso
from core.base.errors import Refused
from core.base.files import read_plain, remove_file, write_private
from core.base.loggers import logger
from core.base.values import dataclass

LINK_SECONDS = 300.0
LOGIN_DAYS = 30
MOST_LINKS, MOST_LOGINS = 16, 32  #: where one comes too many, the oldest goes
_BYTES = 32
_LONGEST_FILE = 64 * 1024
_LOG = logger(__name__)


class LinkUsed(Refused):
    """The key of a link opens nothing."""

    code = "link_used"

    def __init__(self) -> None:
        minutes = round(LINK_SECONDS / 60)
        super().__init__(
            f"this link does not log in: a link is good for one login, within {minutes} minutes, at the service that "
            "made it",
            "make another one: `the-loop page`",
        )


@dataclass(frozen=True)
class Login:
    """One browser. Both hashes are SHA-256 in hexadecimal: the secrets have 256 random bits each."""

    id: str
    cookie: str
    key: str
    since: datetime


class Logins:
    """Makes links, and knows the browsers that came by one, also over a restart. Safe for several threads."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[str, float] = {}  #: until when, on the monotonic clock, by the hash of its key
        self._known: dict[str, Login] | None = None  #: by id; None: not read yet

    def link(self) -> str:
        """Return the key of a new link, which opens one login."""
        key = secrets.token_urlsafe(_BYTES)
        with self._lock:
            self._links[_hash(key)] = self._clock.monotonic() + LINK_SECONDS
            while len(self._links) > MOST_LINKS:
                del self._links[next(iter(self._links))]
        return key

    def login(self, key: str) -> tuple[str, str]:
        """Return a new browser's cookie and key for the key of a link. Raises LinkUsed, StoreBroken."""
        cookie, own = secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES)
        with self._lock:
            until = self._links.pop(_hash(key), None)
            if until is None or self._clock.monotonic() > until:
                raise LinkUsed
            made = Login(secrets.token_hex(8), _hash(cookie), _hash(own), self._clock.now())
            latest = sorted([*self._all().values(), made], key=lambda login: login.since)[-MOST_LOGINS:]
            self._keep({login.id: login for login in latest})
        return f"{made.id}.{cookie}", own

    def knows(self, cookie: str, key: str) -> bool:
        """Return whether these are a browser's that is logged in. How long that takes tells nothing of its secrets."""
        name, _, secret = cookie.partition(".")
        with self._lock:
            found = self._all().get(name)
        if found is None or self._is_over(found):
            return False
        same = hmac.compare_digest(_hash(secret), found.cookie)
        return hmac.compare_digest(_hash(key), found.key) and same

    def end(self, cookie: str) -> None:
        """Log that browser out. Raises StoreBroken."""
        with self._lock:
            known = dict(self._all())
            if known.pop(cookie.partition(".")[0], None) is not None:
                self._keep(known)

    def end_all(self) -> int:
        """Log all browsers out, end all links, and return how many were logged in. Raises StoreBroken."""
        with self._lock:
            ended = sum(not self._is_over(login) for login in self._all().values())
            self._links.clear()
            self._known = {}
            remove_file(self._path)
        return ended

    def _all(self) -> Mapping[str, Login]:
        if self._known is None:
            self._known = read_logins(self._path)
        return self._known

    def _keep(self, known: dict[str, Login]) -> None:
        kept = {name: login for name, login in known.items() if not self._is_over(login)}
        told = [
            {"id": login.id, "cookie": login.cookie, "key": login.key, "since": iso(login.since)}
            for login in kept.values()
        ]
        write_private(self._path, json.dumps({"logins": told}).encode())
        self._known = kept

    def _is_over(self, login: Login) -> bool:
        return not timedelta() <= self._clock.now() - login.since <= timedelta(days=LOGIN_DAYS)


def read_logins(path: Path) -> dict[str, Login]:
    """Return the logins that the file holds, by id. Of one that cannot be read there are none, which the log tells."""
    try:
        found = json.loads(read_plain(path, _LONGEST_FILE))
        return {login.id: login for login in map(_login, found["logins"])}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, LookupError) as error:
        _LOG.warning("logins of the page cannot be read: all log in anew", extra={"reason": repr(error)})
        return {}


def _login(told: Mapping[str, Any]) -> Login:
    return Login(str(told["id"]), str(told["cookie"]), str(told["key"]), from_iso(told["since"]))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
