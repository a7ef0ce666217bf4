"""Dialogs that no hook reports: messages are held while one is open, and the thread shows it.

A harness opens them at its start, before any hook runs, and in some of its modes; a person opens them by a command.
Only the screen shows what they say. A second source of the harness, where there is one, says that it waits at all. A
dialog counts once two looks have seen it. Every command that delivers looks for them; what is needed to show one is
imported only then.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from core.base.errors import NotRunning, TmuxSilent
from core.base.files import is_file
from core.base.names import new_request_id
from core.base.values import replace
from core.config.settings import secret_variables
from core.delivery.screens import Form, Screens
from core.delivery.snapshot import probe_of, replace_activity
from core.model.activity import ASKING_STATES, Activity, ActivityState
from core.model.asking import (
    MAIN,
    Option,
    Press,
    Question,
    Request,
    RequestKind,
    RequestState,
    screen_of,
    session_buttons,
)
from core.model.dialog import Dialog, offers_of
from core.model.harness import StatusProbe
from core.model.observing import second_guess, what_failed_still
from core.model.pane import Pane, Survey
from core.model.reasons import Because, Reason, because
from core.model.session import SessionRecord
from core.session.folder import ASKING
from core.session.sessions import activity_of, has_thread, resolve_record
from core.session.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.base.redaction import Redactor
    from core.config.settings import Settings
    from core.model.posts import NewPost
    from core.store.requests import RequestBook


REPLACED = "another dialog took its place"
_BEGINNING = timedelta(minutes=1)  #: of a start, in which it is looked at as often as an open dialog
_AT_TERMINAL = timedelta(minutes=1)  #: whoever has just typed there sees the dialog
_NEVER = timedelta(days=3650)  #: a dialog stands until somebody answers it


def digest_of(dialog: Dialog) -> str:
    """Return what tells the dialog from every other one."""
    import hashlib  # loads OpenSSL

    return hashlib.sha256("\n".join(dialog.identity).encode()).hexdigest()[:32]


def hold(system: System, record: SessionRecord, dialog: Dialog | None) -> bool:
    """Note that the session waits at the dialog, None for one that cannot be read; False if that was known.

    From now on nothing is typed into it. Raises StoreBroken.
    """
    unread = Because(Reason.DIALOG_UNREAD)
    title, words = (unread, unread.text) if dialog is None else (dialog.title, dialog.title)
    now = system.clock.now()
    with system.database.transaction(durable=False):
        before = activity_of(system.activities, record)
        if before is None:
            return False
        starting = before.state is ActivityState.STARTING
        state = before.state if starting else ActivityState.DIALOG
        why = because(Reason.DIALOG_AT_START if starting else Reason.DIALOG_SHOWN, title=title)
        after = replace(before, state=state, because=why, remarks=what_failed_still(before))
        if after == before:
            return False
        system.activities.put(after if before.state is state else replace(after, since=now))
    system.events.emit(
        "standing.asked", name=record.name, instance=record.instance_id, reason=RequestKind.DIALOG.value,
        detail=_redactor(system.settings, system.environ).redact(words), actor=f"agent:{record.name}",
    )  # fmt: skip
    system.notify()
    return True


def forget_mode(system: System, record: SessionRecord) -> None:
    """Note that a key which is about to be pressed may change the session's permission mode: its harness's next report
    tells it. Raises StoreBroken."""
    with system.database.transaction(durable=False):
        before = activity_of(system.activities, record)
        if before is not None and before.mode:
            system.activities.put(replace(before, mode=""))


def waits_at_dialog(activity: Activity | None) -> bool:
    """Return whether a session is held for a dialog that its screen showed."""
    return activity is not None and (activity.state is ActivityState.DIALOG or activity.waits_at_start)


class DialogWatch:
    """Looks at the screens of sessions that may wait at a dialog. Belongs to one thread; the service's shows them."""

    def __init__(
        self,
        system: System,
        *,
        shows: bool,
        pictured: Callable[[System, SessionRecord, Request], object] | None = None,
    ) -> None:
        """`shows`: dialogs are shown in the sessions' threads, to be answered there; `pictured` adds a picture, and
        waits for nothing."""
        self._system = system
        self._pictured = pictured
        self._screens = Screens(system)
        self._shows = shows
        self._began = system.clock.now()
        self._unsteady: set[str] = set()  #: instances of which one look is not enough
        self._showing: set[str] = set()  #: instances with a dialog in their thread

    def suspects(self, record: SessionRecord, activity: Activity | None) -> bool:
        """Return whether to look often: a dialog is open, or the session has just begun to start."""
        if activity is None or activity.instance != record.instance_id:
            return False
        starting = activity.state is ActivityState.STARTING
        begins = starting and self._system.clock.now() - activity.since < _BEGINNING
        return waits_at_dialog(activity) or begins or activity.instance in self._unsteady | self._showing

    def follow(self, record: SessionRecord, pane: Pane | None, survey: Survey | None = None) -> bool:
        """Look, if there is reason to, and return whether what is known of the session has changed.

        Raises StoreBroken, UnsupportedHarness.
        """
        self._unsteady.discard(record.instance_id or "")
        activity = activity_of(self._system.activities, record)
        if pane is None or pane.dead or activity is None or self._told_by_hook(record, activity):
            return False
        held = waits_at_dialog(activity) or self._is_shown(record)
        opinion = probe_of(self._system.settings, self._system.paths, self._system.harnesses, record, pane.pid)
        waits = opinion is not None and opinion.state in ASKING_STATES
        if not (held or waits or activity.state is ActivityState.STARTING):
            if self._system.clock.now() - activity.since < _BEGINNING:
                self._screens.find_input_line(record)
            return False
        known = self._known(record)
        try:
            shown, steady = self._screens.look(record)
        except (NotRunning, TmuxSilent):
            return False
        if not steady:
            self._unsteady.add(activity.instance)
        if shown.dialog is not None:
            return steady and self._stands(record, shown.dialog, survey, known)
        if held and (shown.form is Form.INPUT or (steady and not waits)):
            return self._over(record, opinion)
        if steady and waits and shown.form is Form.OTHER and not held:
            return hold(self._system, record, None)
        return False

    def _told_by_hook(self, record: SessionRecord, activity: Activity) -> bool:
        """Return whether a hook has told of what is open: its request has buttons of its own."""
        by_hook = activity.state in (ActivityState.PERMISSION, ActivityState.QUESTION)
        return by_hook or is_file(self._system.paths.session(record.uid) / ASKING)

    def _known(self, record: SessionRecord) -> frozenset[str]:
        """Return the digests of the dialogs that the thread shows, and of those that are being answered.

        Asked for before a look: what that look sees may be answered, and gone, by the time it is told. What an earlier
        service was answering is answered by nobody any more.
        """
        if not self._shows:
            return frozenset()
        answering = [
            one
            for one in self._system.requests.untold()
            if one.kind is RequestKind.DIALOG and one.instance == record.instance_id
            if one.settled_at is not None and one.settled_at >= self._began
        ]
        return frozenset(one.digest for one in (*_shown(self._system.requests, record), *answering))

    def _stands(self, record: SessionRecord, dialog: Dialog, survey: Survey | None, known: frozenset[str]) -> bool:
        news = hold(self._system, record, dialog)
        remark = self._system.harnesses.get(resolve_record(record, self._system.settings).harness).remark(dialog.text)
        if remark:
            tell_once(self._system, record, remark.format(name=record.name))
        if self._shows and not self._attended(record, survey):
            if digest_of(dialog) not in known:
                request = show(self._system, record, dialog)
                if request is not None and self._pictured is not None:
                    self._pictured(self._system, record, request)
            self._showing.add(record.instance_id or "")
        return news

    def _is_shown(self, record: SessionRecord) -> bool:
        """Return whether the thread shows a dialog of it, which a hook may have told to be over."""
        return self._shows and bool(_shown(self._system.requests, record))

    def _attended(self, record: SessionRecord, survey: Survey | None) -> bool:
        """Return whether somebody has just typed in its terminal: they see the dialog, and may have opened it."""
        keys = survey.typing.get(record.instance_id or "", ()) if survey is not None else ()
        now = self._system.clock.now()
        return any(now - client.last_key_at < _AT_TERMINAL for client in keys)

    def _over(self, record: SessionRecord, opinion: StatusProbe | None) -> bool:
        """Note that no dialog is open any more, and say so in the thread where it was shown."""
        from core.delivery.permission_requests import CLOSED_THERE

        system, now = self._system, self._system.clock.now()
        close(system, record, CLOSED_THERE)
        self._showing.discard(record.instance_id or "")
        before = activity_of(system.activities, record)
        if before is None or not waits_at_dialog(before):
            return False
        starting = before.state is ActivityState.STARTING
        after = replace(before, because=None, remarks=what_failed_still(before))
        if before.silence is not None and not starting:  # what follows is told by its record, a moment later
            after = replace(after, state=ActivityState.BUSY, since=now)
        elif not starting:
            after = second_guess(after, opinion, now)
        return replace_activity(system, record, before, after)


def close(system: System, record: SessionRecord, reason: str) -> None:
    """End what the thread shows of the session's dialogs. Raises StoreBroken."""
    for request in _shown(system.requests, record):
        from core.delivery.permission_requests import settle

        settle(system, request, RequestState.GONE, reason)


def show(system: System, record: SessionRecord, dialog: Dialog) -> Request | None:
    """Show the dialog in the session's thread, with a button for each way to answer it, and return the request.

    What was shown before in its place is over. None where there is no thread. Raises StoreBroken.
    """
    if not has_thread(system.settings, system.bindings, record):
        return None
    from core.delivery.permission_requests import post_of, settle

    with system.database.transaction(durable=True):
        for request in _shown(system.requests, record):
            settle(system, request, RequestState.GONE, REPLACED)
        request = _request(system, record, dialog, digest_of(dialog))
        system.requests.add(request)
        system.outbox.add([post_of(request)])
    system.notify()
    return request


def tell_once(system: System, record: SessionRecord, remark: str) -> None:
    """Say in the log and in the thread, once an instance, what a person should know of its dialogs."""
    instance = record.instance_id or ""
    with system.database.transaction(durable=True):
        if not system.database.ingested(instance, "remark"):
            return
        if has_thread(system.settings, system.bindings, record):
            system.outbox.add([_note(record, instance, f"`{record.name}`: {remark}.")])
    system.events.emit("standing.unchecked", level="warning", name=record.name, instance=instance, reason=remark)
    system.notify()


def _note(record: SessionRecord, instance: str, text: str) -> NewPost:
    from core.model.posts import OWN_CHAT, NewPost, OutboundKind

    post_id, key = f"p-remark-{instance}", f"remark:{instance}"
    post = NewPost(post_id, key, OutboundKind.NOTE, record.uid, record.name, OWN_CHAT, text)
    return replace(post, buttons=session_buttons(record.uid, Press.RESTART))


def _request(system: System, record: SessionRecord, dialog: Dialog, digest: str) -> Request:
    now, request_id = system.clock.now(), new_request_id()
    redactor = _redactor(system.settings, system.environ)

    def hide(text: str) -> tuple[str, int, int]:
        redacted = redactor.counted(text, asked=True)
        return redacted.text, redacted.count, redacted.characters

    detail, unseen = screen_of(dialog.text, hide, headless=dialog.headless)
    options = tuple(Option(offer.label) for offer in offers_of(dialog))
    return Request(
        id=request_id,
        key=f"dialog-{request_id}",
        uid=record.uid,
        name=record.name,
        instance=record.instance_id or "",
        agent=MAIN,
        kind=RequestKind.DIALOG,
        asked_at=now,
        expires_at=now + _NEVER,
        detail=detail,
        unseen=unseen,
        questions=(Question(dialog.title or "a dialog", options),),
        digest=digest,
    )


def _shown(requests: RequestBook, record: SessionRecord) -> list[Request]:
    opened = requests.open(record.uid)
    return [one for one in opened if one.kind is RequestKind.DIALOG and one.instance == record.instance_id]


def _redactor(settings: Settings, environ: Mapping[str, str]) -> Redactor:
    from core.base.redaction import redactor_of

    return redactor_of(environ, secret_variables(settings, environ))
