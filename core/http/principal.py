"""Who asks over HTTP, and what they may do. It imports nothing of the web framework."""

from __future__ import annotations

from core.base.values import dataclass
from core.config.settings import Settings
from core.model.asking import Role
from core.session.sessions import Author, may_steer
from core.store.records import Records


@dataclass(frozen=True)
class Principal:
    """Who asks. `author` None: the operator of this machine, who may do everything.

    Of anybody else the lists of the chat decide, as they do there: `roles` are what those give the person now, and
    `author` is looked for in a session's own list.
    """

    actor: str  #: for rows and events: `http:ann`, `<chat>:U1`
    who: str = ""  #: what a frame calls them; "": as `actor` does
    author: Author | None = None
    roles: frozenset[Role] = frozenset()

    @property
    def is_operator(self) -> bool:
        """Return whether it is the operator of this machine."""
        return self.author is None

    def may(self, settings: Settings, records: Records, role: Role, name: str) -> bool:
        """Return whether they may do to the session of that name what needs the role."""
        return self.author is None or may_steer(settings, records, lambda _: role in self.roles, name, self.author)
