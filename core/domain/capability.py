"""What the-loop needs of a harness, and what a running one has shown of it so far. No I/O.

Nothing is taken for granted by a version: a capability is proven once the instance has shown it, missing once it has
shown the opposite, and guessed until then.
"""

from collections.abc import Mapping
from enum import Enum


class Capability(Enum):
    """What promises rest on."""

    BOOT_HOOK = "boot hook"  #: it says by itself that it reads
    TURN_EDGES = "turn edges"  #: hooks tell that a turn begins and ends
    QUEUE_EVIDENCE = "queue evidence"  #: what is queued in it can be told from what a turn has taken
    PERMISSION_HOOK = "permission hook"  #: a hook tells of a permission dialog, and can answer it
    MODE = "mode"  #: its reports name the permission mode
    TRANSCRIPT = "transcript form"  #: the conversation's record is found and understood
    RESUME = "resume"  #: it goes on with an earlier conversation
    MCP_APPROVAL = "MCP approval"  #: our tools are offered to its model without a dialog
    BACKGROUND_TASKS = "background tasks"  #: it tells of tasks that go on after a turn
    PLAIN_PASTES = "pasting"  #: what is pasted reaches the model as typed


class Grade(Enum):
    """How sure it is that an instance has a capability."""

    PROVEN = "proven"  #: this instance has shown it
    GUESSED = "guessed"  #: it was not needed yet
    MISSING = "missing"  #: this instance has shown that it lacks it


#: What follows for people where a capability is missing.
CONSEQUENCES: Mapping[Capability, str] = {
    Capability.BOOT_HOOK: "messages wait until its screen or another source shows that it reads",
    Capability.TURN_EDGES: "its turns are told by its conversation's record and its status file, some seconds late",
    Capability.QUEUE_EVIDENCE: "a message in a running turn is `accepted`, and its way into a turn is not followed",
    Capability.PERMISSION_HOOK: "permission dialogs are recognised on its screen only, or answered in its terminal",
    Capability.MODE: "the permission mode that runs is not known",
    Capability.TRANSCRIPT: "a message is `accepted` where no second report shows that a turn took it",
    Capability.RESUME: "a restart begins a new conversation",
    Capability.MCP_APPROVAL: "it may ask about our tools in a dialog, and nothing is typed meanwhile",
    Capability.BACKGROUND_TASKS: "a session with background tasks may look idle",
    Capability.PLAIN_PASTES: "its model gets long messages as pasted, and may not take it for the person's words",
}

LONG_LINES, LONG_TEXT = 3, 800  #: a text of more line breaks or characters than this may arrive as pasted
OUR_TOOL = "mcp__the-loop"  #: begins the name of each of our tools, as a harness with MCP calls it

Shown = Mapping[Capability, bool]  #: what an instance has shown to have, and to lack


def graded(shown: Shown) -> dict[Capability, Grade]:
    """Return how sure each capability is, in the order of their declaration."""
    grades = {True: Grade.PROVEN, False: Grade.MISSING}
    return {each: grades[shown[each]] if each in shown else Grade.GUESSED for each in Capability}


def consequences(shown: Shown) -> tuple[str, ...]:
    """Return for each capability that is missing what follows for people."""
    return tuple(
        f"{each.value} is missing in this version: {CONSEQUENCES[each]}"
        for each, grade in graded(shown).items()
        if grade is Grade.MISSING
    )
