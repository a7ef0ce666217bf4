"""Modals and Home tabs: what an app opens by a trigger, what a person fills in and sends, and what comes of it.

The rules are those of Slack's pages views.open, views.update, views.publish and /reference/views: a trigger lives three
seconds and opens one view; a submission has to be acknowledged within three; errors name blocks of the form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from embedded.workspace import model
from embedded.workspace.delivering import Events, NotAcknowledged, NotConnected, Sockets
from embedded.workspace.limits import check_view
from embedded.workspace.model import ApiError, App, Changes, ControlError, Json, Store, User, new_id

TRIGGER_SECONDS = 3.0
_NO_ANSWER = "We had some trouble connecting. Try again?"


@dataclass(frozen=True)
class Submitted:
    """What became of a form that was sent: `errors` by block; `trouble` where the app did not take it."""

    closed: bool
    errors: Mapping[str, str]
    trouble: str = ""


class Views:
    """The views of all people. They live in memory, as a client's window does."""

    def __init__(self, store: Store, sockets: Sockets, events: Events, changes: Changes, team: Json) -> None:
        self._store = store
        self._sockets = sockets
        self._events = events
        self._changes = changes
        self._team = team
        self._triggers: dict[str, tuple[str, str, float]] = {}  #: trigger -> app, user, until when it counts
        self._used: set[str] = set()
        self._open: dict[str, tuple[str, Json]] = {}  #: view id -> user, view
        self._homes: dict[tuple[str, str], Json] = {}  #: app, user -> view

    # --- what apps do

    def trigger(self, app: App, user: User) -> str:
        """Return a trigger of what this person did just now."""
        trigger = f"{new_id('')}.{new_id('')}.{new_id('').lower()}"
        self._triggers[trigger] = (app.id, user.id, model.now() + TRIGGER_SECONDS)
        return trigger

    def open(self, app: App, trigger: str, view: Any) -> Json:
        """Show a modal to whoever the trigger belongs to. Raises ApiError."""
        checked = check_view(view, "modal")
        if trigger in self._used:
            raise ApiError("exchanged_trigger_id")
        owner, user, until = self._triggers.pop(trigger, ("", "", 0.0))
        if owner != app.id:
            raise ApiError("invalid_trigger_id")
        if model.now() > until:
            raise ApiError("expired_trigger_id")
        self._used.add(trigger)
        return self._put(app, user, new_id("V"), checked)

    def update(self, app: App, view_id: str, view: Any, digest: str) -> Json:
        """Put another view in the place of an open one. Raises ApiError."""
        found = self._open.get(view_id)
        if found is None or found[1]["app_id"] != app.id:
            raise ApiError("not_found")
        if digest and digest != found[1]["hash"]:
            raise ApiError("hash_conflict")
        return self._put(app, found[0], view_id, check_view(view, "modal"))

    def publish(self, app: App, user: str, view: Any, digest: str) -> Json:
        """Show it as the app's Home tab of a person. Raises ApiError."""
        if self._store.member(user) is None:
            raise ApiError("invalid_arguments", response_metadata={"messages": ["invalid `user_id`"]})
        if not app.home_tab:
            raise ApiError("not_enabled")
        checked, before = check_view(view, "home"), self._homes.get((app.id, user))
        if digest and before is not None and digest != before["hash"]:
            raise ApiError("hash_conflict")
        shown = self._whole(app, before["id"] if before else new_id("V"), checked)
        self._homes[app.id, user] = shown
        self._changes.notify()
        return shown

    # --- what people do

    def home(self, app: App, user: User) -> Json | None:
        """Return the app's Home tab of a person, None before one was published."""
        return self._homes.get((app.id, user.id))

    def open_home(self, app: App, user: User, tab: str = "home") -> None:
        """Look at the app's Home or Messages tab, of which the app is told each time."""
        view = self._homes.get((app.id, user.id))
        place = self._store.direct(user.id, app).id
        event: Json = {"type": "app_home_opened", "user": user.id, "channel": place, "tab": tab}
        event |= {"event_ts": f"{model.now():.6f}"} | ({"view": view} if view and tab == "home" else {})
        self._events.tell_of(app, "app_home_opened", event)

    def modal(self, user: User) -> Json | None:
        """Return the modal that a person has open."""
        return next((view for owner, view in reversed(self._open.values()) if owner == user.id), None)

    def close(self, user: User, view_id: str) -> None:
        """Close a modal without sending it."""
        self._found(user, view_id)
        del self._open[view_id]
        self._changes.notify()

    def submission(self, user: User, view_id: str, values: Mapping[str, Any]) -> Json:
        """Return the payload that sending a modal brings; `values` by block, as they were filled in.

        Raises ControlError where the client would not send it: a field that is needed is empty, or one is too long.
        """
        view = self._found(user, view_id)
        app = self._app(view)
        sent = {**view, "state": {"values": _state(view, values)}}
        return {
            "type": "view_submission",
            "team": {"id": self._team["id"], "domain": self._team["domain"]},
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
            "api_app_id": app.id,
            "token": "no-verification-token",
            "trigger_id": self.trigger(app, user),
            "view": sent,
            "response_urls": [],
            "is_enterprise_install": False,
            "enterprise": None,
        }

    async def submit(self, user: User, view_id: str, values: Mapping[str, Any]) -> Submitted:
        """Send a modal, and do what the app answers."""
        payload = self.submission(user, view_id, values)
        try:
            answer = await self._sockets.request(payload["api_app_id"], "interactive", payload)
        except (NotConnected, NotAcknowledged):
            return Submitted(False, {}, _NO_ANSWER)
        return self.answered(view_id, answer)

    def answered(self, view_id: str, answer: Json) -> Submitted:
        """Do what an app's answer to a submission says: nothing closes the view, errors keep it open."""
        action = answer.get("response_action")
        owner, view = self._open[view_id]
        if action == "errors":
            errors = answer.get("errors")
            inputs = {block["block_id"] for block in view["blocks"] if block["type"] == "input"}
            if not isinstance(errors, dict) or not errors or set(errors) - inputs:
                return Submitted(False, {}, _NO_ANSWER)
            return Submitted(False, {str(block): str(text) for block, text in errors.items()})
        if action == "update":
            try:
                self._put(self._app(view), owner, view_id, check_view(answer.get("view"), "modal"))
            except ApiError:
                return Submitted(False, {}, _NO_ANSWER)
            return Submitted(False, {})
        if action not in (None, "clear"):
            return Submitted(False, {}, _NO_ANSWER)
        del self._open[view_id]
        self._changes.notify()
        return Submitted(True, {})

    def pressed(self, user: User, view_id: str, action_id: str, value: str | None) -> Json:
        """Return the payload that pressing a button of a view brings. Raises ControlError."""
        view = next((one for (_, owner), one in self._homes.items() if one["id"] == view_id and owner == user.id), None)
        view = view or self._found(user, view_id)
        app = self._app(view)
        for block in view["blocks"]:
            for element in (*block.get("elements", []), block.get("accessory", {})):
                if element.get("action_id") == action_id and value in (None, element.get("value")):
                    shown = {key: element[key] for key in ("text", "value", "style", "confirm") if key in element}
                    action = {**shown, "action_id": action_id, "block_id": block["block_id"], "type": "button"}
                    return {
                        "type": "block_actions",
                        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
                        "api_app_id": app.id,
                        "token": "no-verification-token",
                        "trigger_id": self.trigger(app, user),
                        "container": {"type": "view", "view_id": view_id},
                        "team": {"id": self._team["id"], "domain": self._team["domain"]},
                        "enterprise": None,
                        "is_enterprise_install": False,
                        "view": view,
                        "actions": [{**action, "action_ts": f"{model.now():.6f}"}],
                    }
        raise ControlError(f"view {view_id} has no button {action_id!r}; look at its blocks")

    async def press(self, user: User, view_id: str, action_id: str, value: str | None = None) -> str | None:
        """Press a button of a view; return the error that the person sees, None without one."""
        payload = self.pressed(user, view_id, action_id, value)
        try:
            await self._sockets.request(payload["api_app_id"], "interactive", payload)
        except NotConnected:
            return "dispatch_failed"
        except NotAcknowledged:
            return "operation_timeout"
        return None

    # ---

    def _put(self, app: App, user: str, view_id: str, view: Json) -> Json:
        whole = self._whole(app, view_id, view)
        self._open[view_id] = (user, whole)
        self._changes.notify()
        return whole

    def _whole(self, app: App, view_id: str, view: Json) -> Json:
        defaults: Json = {"private_metadata": "", "callback_id": "", "external_id": "", "close": None, "submit": None}
        return {
            **defaults,
            "title": None,
            "clear_on_close": False,
            "notify_on_close": False,
            **view,
            "id": view_id,
            "team_id": self._team["id"],
            "app_id": app.id,
            "app_installed_team_id": self._team["id"],
            "bot_id": app.bot_id,
            "root_view_id": view_id,
            "previous_view_id": None,
            "state": {"values": {}},
            "hash": f"{int(model.now())}.{new_id('').lower()}",
        }

    def _found(self, user: User, view_id: str) -> Json:
        owner, view = self._open.get(view_id, ("", {}))
        if owner != user.id:
            raise ControlError(f"{user.name} has no modal {view_id!r} open")
        return view

    def _app(self, view: Json) -> App:
        app = self._store.app(view["app_id"])
        if app is None:
            raise ControlError("the app of this view is gone")
        return app


def _state(view: Json, values: Mapping[str, Any]) -> Json:
    """Return `state.values` of a filled-in form: every input has its entry. Raises ControlError."""
    inputs = {block["block_id"]: block for block in view["blocks"] if block["type"] == "input"}
    unknown = set(values) - set(inputs)
    if unknown:
        raise ControlError(f"the form has no fields {sorted(unknown)}; it has {', '.join(inputs)}")
    state: Json = {}
    for block_id, block in inputs.items():
        element = block["element"]
        given = values[block_id] if block_id in values else _initial(element)
        if not given and not block.get("optional"):
            raise ControlError(f"{block_id}: please complete this required field")
        entry = _FILLED[element["type"]](element, given)
        state[block_id] = {element["action_id"]: {"type": element["type"], **entry}}
    return state


def _initial(element: Json) -> Any:
    if element["type"] == "static_select":
        return (element.get("initial_option") or {}).get("value")
    for key in ("initial_value", "initial_conversation", "initial_users"):
        if key in element:
            return element[key]
    return None


def _typed(element: Json, given: Any) -> Json:
    if given and len(given) > element.get("max_length", 3000):
        raise ControlError(f"at most {element.get('max_length', 3000)} characters go into this field")
    return {"value": given or None}


def _chosen(element: Json, given: Any) -> Json:
    option = next((one for one in element["options"] if one["value"] == given), None)
    if given and option is None:
        raise ControlError(f"{given!r} is no option of this field: {json.dumps(element['options'])}")
    return {"selected_option": option}


_FILLED: Mapping[str, Any] = {
    "plain_text_input": _typed,
    "static_select": _chosen,
    "conversations_select": lambda _, given: {"selected_conversation": given or None},
    "multi_users_select": lambda _, given: {"selected_users": list(given or ())},
}
