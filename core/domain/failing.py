"""What it means that a turn failed, in the words of people, and what they can do about it. No I/O."""

from collections.abc import Mapping
from enum import Enum

_LONGEST = 300  #: characters of what the harness says itself


class Failure(Enum):
    """Why a turn failed on the model's side."""

    LOGIN = "not-logged-in"
    ACCOUNT = "account"  #: nobody may use it as it is
    LIMIT = "usage-limit"
    LENGTH = "too-long"
    MODEL = "no-such-model"
    SERVICE = "service"  #: the model's service is overloaded, down or cannot be reached
    OTHER = "refused"


_WHAT: Mapping[Failure, str] = {
    Failure.LOGIN: "its program is not logged in, or its key is not valid",
    Failure.ACCOUNT: "its account cannot be used",
    Failure.LIMIT: "its account has used up its limit",
    Failure.LENGTH: "its conversation is too long for the model",
    Failure.MODEL: "its model is not there for its account",
    Failure.SERVICE: "the model's service is overloaded or cannot be reached",
    Failure.OTHER: "the model's service refused the request",
}
_REMEDIES: Mapping[Failure, str] = {
    Failure.LOGIN: "log it in on {host}",
    Failure.ACCOUNT: "see to the account",
    Failure.LIMIT: "wait until the limit is over",
    Failure.LENGTH: "shorten it at its terminal, {attach}",
    Failure.MODEL: "choose another at its terminal, {attach}",
    Failure.SERVICE: "try again in some minutes",
    Failure.OTHER: "look at its terminal, {attach}",
}


def what_failed(failure: Failure, message: str) -> str:
    """Return why the turn failed: our words, and the harness's own, `message`, where it has any."""
    said = " ".join(message.split())
    said = said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"
    return f"{_WHAT[failure]} ({said})" if said else _WHAT[failure]


def remedy_of(failure: Failure, remedies: Mapping[Failure, str], *, host: str, attach: str) -> str:
    """Return what a person can do. `remedies`: what the harness's adapter knows better; `attach`: a command."""
    return remedies.get(failure, _REMEDIES[failure]).format(host=host, attach=attach)
