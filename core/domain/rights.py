"""Who may use which verb. No I/O."""

from enum import Enum

from core.errors import NotPermitted


class ActorKind(Enum):
    """Who asks."""

    OPERATOR = "operator"  #: at the terminal or the control plane
    AGENT = "agent"  #: a process inside one of our own panes


class Verb(Enum):
    """What can be asked."""

    LIST = "list"
    GET = "get"
    STATUS = "status"
    SCREEN = "screen"
    ATTACH = "attach"
    EVENTS = "events"
    SAY = "say"
    CREATE = "create"
    DELETE = "delete"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    PAUSE = "pause"
    RESUME = "resume"
    INTERRUPT = "interrupt"
    QUEUE = "queue"
    CANCEL = "cancel"
    CONFIRM = "confirm"
    LOGS = "logs"
    ANNOUNCE = "announce"
    POST = "post"
    ASK = "ask"
    LOOPS = "look at the loops of"
    LOOP = "make and steer the loops of"  #: an agent: of its own session
    CONFIGURE = "configure"  #: write the configuration, which names the programs that run


READS = frozenset({Verb.LIST, Verb.GET, Verb.STATUS, Verb.SCREEN, Verb.EVENTS, Verb.QUEUE, Verb.LOGS, Verb.LOOPS})
SPEAKS = frozenset({Verb.SAY, Verb.POST, Verb.ASK})
OWN = frozenset({Verb.LOOP})  #: an agent's, within its own session: `core.loops.verbs` holds it to that


def permitted(actor: ActorKind, verb: Verb) -> bool:
    """Tell whether the actor may use the verb: an operator any, an agent what reads or speaks, and its loops.

    Attaching is no reading: an attached terminal can be typed into.
    """
    return actor is ActorKind.OPERATOR or verb in READS | SPEAKS | OWN


def require(actor: ActorKind, verb: Verb) -> None:
    """Raise NotPermitted if the actor may not use the verb."""
    if not permitted(actor, verb):
        raise NotPermitted(
            f"an agent may not {verb.value} sessions: it reads, speaks and has loops of its own",
            "ask your operator to run it",
        )
