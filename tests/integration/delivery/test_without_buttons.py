"""A chat whose presses do not arrive: no button is shown that would do nothing, and the text says what does it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.chat.outbound import OutboundWorker
from core.model.asking import Button, Press, announced_buttons
from core.model.posts import OutboundKind
from core.model.session import SessionRecord
from core.session.commands import command_line
from core.session.system import System
from tests.support.chat import Chat
from tests.support.outgoing import HandClock, drain, post
from tests.support.world import definition

ALL = (Press.CANCEL, Press.CONFIRM, Press.INTERRUPT, Press.SEND_AGAIN, Press.START, Press.START_AND_SEND)


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def threaded(system: System, clock: HandClock) -> System:
    """Give ports with a recorded session `scribe`, whose root is on its way."""
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), datetime(2026, 11, 29, tzinfo=UTC)))
    system.outbox.add([post(OutboundKind.ROOT)])
    return replace(system, clock=clock)


def said(system: System, chat: Chat, clock: HandClock, *presses: Press, kind: OutboundKind = OutboundKind.NOTE) -> str:
    """Post with these buttons, and return what is shown; no button may be."""
    system.outbox.add([post(kind, 1, buttons=tuple(Button(press, "m-7", press.value) for press in presses))])
    drain(OutboundWorker(system, chat), clock)
    assert chat.shown[chat.messages[-1].ts] == ()
    return chat.texts()[-1]


@pytest.mark.parametrize("press", [press for press in ALL if press is not Press.START_AND_SEND])
def test_each_button_of_a_note_has_a_command_in_its_place(threaded: System, clock: HandClock, press: Press) -> None:
    """As it can be typed, the configuration included, with the message or the session that it is about."""
    text = said(threaded, Chat(buttons=False), clock, press)

    verb = {Press.SEND_AGAIN: "say"}.get(press, press.value)
    what = "m-7" if press in (Press.CANCEL, Press.CONFIRM) else "scribe"
    assert f"{command_line(threaded.settings.source, threaded.environ)} standing {verb} {what}" in text


def test_a_note_with_all_buttons_says_each_thing_once(threaded: System, clock: HandClock) -> None:
    """Where replies are read, sending again is writing again."""
    text = said(threaded, Chat(buttons=False, replies=True), clock, *ALL)

    assert [text.count(f" standing {verb} ") for verb in ("cancel", "confirm", "interrupt", "start")] == [1, 1, 1, 1]
    assert "write it here again" in text
    assert "standing say" not in text


@pytest.mark.parametrize("replies", [True, False])
def test_a_permission_is_answered_at_the_terminal(threaded: System, clock: HandClock, replies: bool) -> None:
    """A reply is no answer to it, in any mode."""
    chat = Chat(buttons=False, replies=replies)

    text = said(threaded, chat, clock, Press.ALLOW, Press.DENY, kind=OutboundKind.REQUEST)

    assert text.count("standing attach scribe --write`") == 1


def test_the_options_of_a_question_need_no_words_of_their_own(threaded: System, clock: HandClock) -> None:
    """Its text lists them and says how it is answered."""
    text = said(threaded, Chat(buttons=False, replies=True), clock, Press.OPTION, kind=OutboundKind.REQUEST)

    assert text == "request 1"


def test_a_command_that_the_note_names_already_is_not_named_again(threaded: System, clock: HandClock) -> None:
    """A reply that came late is told with the command that lets it in."""
    chat, button = Chat(buttons=False), Button(Press.CONFIRM, "m-7", "Send it")
    note = post(OutboundKind.NOTE, 1, buttons=(button,))
    threaded.outbox.add([replace(note, text="It came late. To do: `the-loop standing confirm m-7`")])

    drain(OutboundWorker(threaded, chat), clock)

    assert chat.texts()[-1].count("standing confirm m-7") == 1
    assert "no buttons" not in chat.texts()[-1]


def test_where_presses_arrive_the_buttons_stand_there(threaded: System, clock: HandClock) -> None:
    """And the text is as it was."""
    chat, button = Chat(), Button(Press.CANCEL, "m-7", "Cancel")
    threaded.outbox.add([post(OutboundKind.NOTE, 1, buttons=(button,))])

    drain(OutboundWorker(threaded, chat), clock)

    assert chat.shown[chat.messages[-1].ts] == (button,)
    assert chat.texts()[-1] == "note 1"


def test_an_announcement_is_shown_without_its_buttons_and_says_nothing_of_them(
    threaded: System, clock: HandClock
) -> None:
    """They are offered besides; whoever reads it there misses none."""
    buttons = announced_buttons("s-1", lives=True)
    threaded.outbox.add([post(OutboundKind.ROOT_UPDATE, 1, buttons=buttons)])
    chat = Chat(buttons=False)

    drain(OutboundWorker(threaded, chat), clock)

    [root] = chat.messages
    assert (root.text, chat.shown[root.ts]) == ("root-update 1", ())
