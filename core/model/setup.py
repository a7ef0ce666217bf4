"""The contract between the command line and a chat that helps somebody to set it up."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from core.base.clock import Clock


class Person(Protocol):
    """Whoever sits at the terminal. Each question raises Refused once they end the conversation."""

    def step(self, title: str) -> None:
        """Begin a step."""
        ...

    def tell(self, text: str) -> None:
        """Say something."""
        ...

    def done(self, text: str) -> None:
        """Say that something was checked and is well."""
        ...

    def wrong(self, text: str, remedy: str) -> None:
        """Say that something was checked and is not well."""
        ...

    def ask(self, question: str, default: str = "") -> str:
        """Return the answer without blanks around it; the default where it is empty."""
        ...

    def secret(self, question: str) -> str:
        """Return an answer that is shown nowhere while it is typed."""
        ...


#: Keeps secrets by the names of their variables where the service reads them; those that are there already stay.
#: Raises StoreBroken.
Keep = Callable[[Mapping[str, str]], None]


class SetUp(Protocol):
    """What a ChatInfo's `setup` names: it asks, checks, and yields what is to be written into the chat's block.

    What is in place already is checked and not asked again, so that whoever stopped in the middle begins anew.
    """

    def __call__(
        self, person: Person, block: Mapping[str, Any], environ: Mapping[str, str], keep: Keep, clock: Clock
    ) -> Iterator[Mapping[str, Any]]:
        """`block`: as the model of its ChatInfo reads it. Raises ChannelError, Refused."""
        ...
