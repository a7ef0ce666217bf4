"""The state diagrams of the documentation, drawn from the tables themselves: `python -m core.domain.diagrams [FILE…]`.

Without files the diagrams are printed. With files, each place between `<!-- diagram: NAME -->` and
`<!-- end of diagram -->` is filled in anew.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from core.domain import loop, message
from core.domain.session import TRANSITIONS, Phase

_PLACE = re.compile(r"(<!-- diagram: (?P<name>[a-z-]+) -->\n).*?(<!-- end of diagram -->)", re.DOTALL)


def phases() -> str:
    """Return the phases of a record and what moves it between them, as Mermaid."""
    lines = ["stateDiagram-v2", "    [*] --> settled: first mark", "    [*] --> creating: create"]
    for phase, steps in TRANSITIONS.items():
        lines += [f"    {phase.value} --> {after.value}: {event.value}" for event, after in steps.items()]
    lines += [f"    {phase.value} --> [*]: {why}" for phase, why in _ENDS.items()]
    return "\n".join(lines)


_ENDS = {Phase.CREATING: "it did not come up", Phase.DELETING: "all is gone"}


def messages() -> str:
    """Return the states of a message and what may follow each, as Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {message.MessageState.PENDING.value}"]
    for state, following in message.TRANSITIONS.items():
        after = sorted(next_state.value for next_state in following)
        lines += [f"    {state.value} --> {value}" for value in after] or [f"    {state.value} --> [*]"]
    return "\n".join(lines)


def loops() -> str:
    """Return the states of a loop and what moves it between them, as Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {loop.LoopStatus.ACTIVE.value}: create"]
    for status, steps in loop.TRANSITIONS.items():
        lines += [f"    {status.value} --> {after.value}: {event.value}" for event, after in steps.items()]
        lines += [] if steps else [f"    {status.value} --> [*]"]
    return "\n".join(lines)


DIAGRAMS: Mapping[str, str] = {"phases": phases(), "messages": messages(), "loops": loops()}


def filled(text: str) -> str:
    """Return the document with every diagram as the tables have it now. Raises KeyError for an unknown name."""
    return _PLACE.sub(lambda place: f"{place[1]}```mermaid\n{DIAGRAMS[place['name']]}\n```\n{place[3]}", text)


def main(arguments: list[str]) -> None:
    """Print the diagrams, or fill them into the files."""
    for name in arguments:
        path = Path(name)
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if not arguments:
        sys.stdout.write("\n\n".join(DIAGRAMS.values()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
