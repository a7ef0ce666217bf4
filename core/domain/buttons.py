"""Buttons below a post, and who may press them. No I/O."""

from enum import Enum

from core.values import dataclass


class Role(Enum):
    """What somebody in a chat is, by the channel's lists."""

    MEMBER = "member"  #: may steer, look, pause, interrupt
    APPROVER = "approver"  #: may answer permission requests and questions
    OPERATOR = "operator"  #: may start and stop, too


class Press(Enum):
    """What a button does."""

    ALLOW = "allow"
    DENY = "deny"
    OPTION = "option"
    CHOOSE = "choose"  #: a choice of a dialog in the terminal, or a key of it
    CANCEL = "cancel"
    SEND_AGAIN = "send-again"
    CONFIRM = "confirm"
    INTERRUPT = "interrupt"
    START = "start"
    START_AND_SEND = "start-and-send"
    SCREEN = "screen"


NEEDS = {
    Press.ALLOW: Role.APPROVER,
    Press.DENY: Role.APPROVER,
    Press.OPTION: Role.APPROVER,
    Press.CHOOSE: Role.APPROVER,
    Press.CANCEL: Role.MEMBER,
    Press.SEND_AGAIN: Role.MEMBER,
    Press.CONFIRM: Role.MEMBER,
    Press.INTERRUPT: Role.MEMBER,
    Press.SCREEN: Role.MEMBER,
    Press.START: Role.OPERATOR,
    Press.START_AND_SEND: Role.OPERATOR,
}


@dataclass(frozen=True)
class Button:
    """A button. `target` is the durable id of what it is about: a request's, a message's or a session's; never text."""

    press: Press
    target: str
    label: str
    place: tuple[int, int] = (0, 0)  #: OPTION, CHOOSE: which question, and which of its options, from 0
    style: str = ""  #: "primary" | "danger" | ""

    @property
    def role(self) -> Role:
        """Return who may press it."""
        return NEEDS[self.press]

    @property
    def action(self) -> str:
        """Return what tells it from the others of its post: `allow`, `option-0-2`."""
        numbered = self.press in (Press.OPTION, Press.CHOOSE)
        return f"{self.press.value}-{self.place[0]}-{self.place[1]}" if numbered else str(self.press.value)
