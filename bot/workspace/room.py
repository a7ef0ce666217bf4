"""One workspace: what is stored and told, and the parts that do it, for its doors: methods, controls, page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.workspace import manifest as manifests
from bot.workspace.address import Address
from bot.workspace.changes import Changes
from bot.workspace.errors import ControlError, Json
from bot.workspace.events import Events
from bot.workspace.faults import Faults
from bot.workspace.interactions import Interactions
from bot.workspace.model import App, Store
from bot.workspace.posting import Posting
from bot.workspace.seed import seed, team_of
from bot.workspace.socketmode import Sockets
from bot.workspace.uploads import Uploads


@dataclass(frozen=True)
class Room:
    """The parts of one workspace; they share one store, one counter of changes and one address."""

    address: Address
    store: Store
    team: Json
    changes: Changes
    faults: Faults
    uploads: Uploads
    sockets: Sockets
    events: Events
    posting: Posting
    interactions: Interactions

    @property
    def base_url(self) -> str:
        """Return where the workspace listens, without a slash at the end; "" until it does."""
        return self.address.url

    @property
    def main_app(self) -> App:
        """Return the app the manifest describes. Raises ControlError when the store names none."""
        app = self.store.app(self.store.meta("main_app") or "")
        if app is None:
            raise ControlError("the workspace's file names no main app; delete the file and start again")
        return app


def furnish(
    database: Path | None,
    manifest: Mapping[str, Any] | None,
    *,
    retry_scale: float,
    ack_seconds: float,
    ping_seconds: float,
) -> Room:
    """Return a workspace's parts over its store; an empty store gets people, channels and the manifest's app."""
    address, store, changes = Address(), Store(database), Changes()
    seed(store, manifests.read_manifest(manifest if manifest is not None else manifests.DEFAULT))
    team = team_of(store)
    sockets = Sockets(address, changes, ack_seconds, ping_seconds)
    events = Events(store, sockets, changes, team["id"], retry_scale)
    posting = Posting(address, store, events, changes)
    interactions = Interactions(address, store, sockets, posting, team)
    return Room(address, store, team, changes, Faults(), Uploads(), sockets, events, posting, interactions)
