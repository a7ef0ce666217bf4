"""What a new workspace holds, and how an app is installed into it."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.workspace import clock
from bot.workspace.errors import Json
from bot.workspace.ids import new_id, new_secret
from bot.workspace.manifest import Manifest
from bot.workspace.model import App, Channel, Store, User

_PEOPLE = (("you", "You"), ("alice", "Alice Martin"), ("bob", "Bob Okafor"))
_OTHER_BOT = Manifest(
    name="deploybot",
    scopes=("chat:write", "channels:history", "channels:read", "users:read"),
    events=(),
    commands=(),
    interactivity=False,
    socket_mode=True,
)


def seed(store: Store, manifest: Manifest) -> None:
    """Fill a new workspace, or bring the main app of an existing one up to its manifest.

    A new one has the channel #agents with you, alice, bob, both bots, and mallory of another organization;
    the channel is therefore shared with that organization.
    """
    if store.meta("team") is None:
        _create(store, manifest)
        return
    main = store.app(store.meta("main_app") or "")
    if main is not None:
        store.put_app(_with_manifest(main, manifest))


def install(store: Store, manifest: Manifest) -> App:
    """Install an app with fresh tokens and a bot user of its own."""
    team = team_of(store)
    app_id = new_id("A")
    app = App(
        id=app_id,
        name=manifest.name,
        bot_id=new_id("B"),
        bot_user=new_id("U"),
        bot_token=new_secret("xoxb-"),
        app_token=new_secret(f"xapp-1-{app_id}-"),
    )
    app = _with_manifest(app, manifest)
    store.put_app(app)
    store.put_user(User(app.bot_user, app.name, app.name, team["id"], bot_id=app.bot_id))
    return app


def team_of(store: Store) -> Json:
    """Return the workspace's team: id, name, domain."""
    return dict(json.loads(store.meta("team") or "{}"))


def _create(store: Store, manifest: Manifest) -> None:
    store.set_meta("team", json.dumps({"id": new_id("T"), "name": "Loopback", "domain": "loopback"}))
    store.set_meta("control_token", new_secret())
    store.set_meta("page_key", new_secret())
    team = team_of(store)["id"]
    people = [User(new_id("U"), name, real_name, team) for name, real_name in _PEOPLE]
    mallory = User(new_id("U"), "mallory", "Mallory (Elsewhere Inc.)", new_id("T"))
    for user in (*people, mallory):
        store.put_user(user)
    main, other = install(store, manifest), install(store, _OTHER_BOT)
    store.set_meta("main_app", main.id)
    topic = "Standing sessions, a thread each"
    channel = Channel(new_id("C"), "agents", int(clock.now()), people[0].id, topic, is_ext_shared=True)
    store.put_channel(channel)
    for member in (*(person.id for person in people), mallory.id, main.bot_user, other.bot_user):
        store.join(channel.id, member)


def _with_manifest(app: App, manifest: Manifest) -> App:
    return replace(
        app,
        name=manifest.name,
        scopes=manifest.scopes,
        events=manifest.events,
        commands=manifest.commands,
        interactivity=manifest.interactivity,
        socket_mode=manifest.socket_mode,
    )
