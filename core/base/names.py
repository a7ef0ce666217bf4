"""Names, references, tmux targets and ids: their grammar, and how new ones are made."""

import os
import re

from core.base.errors import InvalidValue
from core.base.values import dataclass

STANDING_PREFIX = "standing:"
TARGET_PREFIX = "loop-standing-"
INSTANCE_VARIABLE = "THE_LOOP_INSTANCE"  #: in the environment of every process of an instance
NAME_PATTERN = r"[a-z0-9][a-z0-9-]{0,39}"  #: what a name of a session matches as a whole
_NAME = re.compile(NAME_PATTERN)
_WORK_ITEM = (  # compiled at its first use, which most commands have none of
    r"(?P<provider>github):(?:(?P<host>[a-z0-9.-]+\.[a-z0-9.-]+)/)?"
    r"(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<repo>[A-Za-z0-9._-]+)#(?P<number>[1-9][0-9]{0,17})"
)
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: people read these aloud. 32: each is as likely


@dataclass(frozen=True)
class WorkItemRef:
    """A ticket: `github:[host/]owner/repo#N`."""

    provider: str
    host: str | None
    owner: str
    repo: str
    number: int


def check_name(name: str, of: str = "session") -> str:
    """Return the name if it can be that of a session, or of whatever `of` says. Raises InvalidValue."""
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"{name!r} is no {of} name",
            "use 1 to 40 of a-z, 0-9 and '-', beginning with a letter or digit",
        )
    return name


def standing_ref(name: str) -> str:
    """Return `standing:<name>`. Raises InvalidValue."""
    return STANDING_PREFIX + check_name(name)


def parse_standing_ref(ref: str) -> str | None:
    """Return the session name of a `standing:<name>` ref, or None if it is not one."""
    if not ref.startswith(STANDING_PREFIX):
        return None
    name = ref.removeprefix(STANDING_PREFIX)
    return name if _NAME.fullmatch(name) else None


def parse_work_item_ref(ref: str) -> WorkItemRef | None:
    """Return the ticket of a `github:…#N` ref, or None if it is not one."""
    found = re.fullmatch(_WORK_ITEM, ref)
    if found is None:
        return None
    return WorkItemRef(found["provider"], found["host"], found["owner"], found["repo"], int(found["number"]))


def target_for(name: str) -> str:
    """Return the tmux session name of a standing session. Raises InvalidValue."""
    return TARGET_PREFIX + check_name(name)


def _random(length: int) -> str:
    return "".join([_ALPHABET[byte % len(_ALPHABET)] for byte in os.urandom(length)])


def new_uid() -> str:
    """Return a new session uid, minted at a record's first write."""
    return f"s-{_random(16)}"


def new_instance() -> str:
    """Return a new instance id: the tag of one spawned pane and the marker of its processes."""
    return f"i-{_random(20)}"


def new_message_id() -> str:
    """Return a new message id."""
    return f"m-{_random(20)}"


def new_request_id() -> str:
    """Return a new id of a permission request or a question."""
    return f"q-{_random(20)}"


def new_marker() -> str:
    """Return a short marker (`k3f9x2`): `#k3f9x2` in a framed message, looked for in the harness's records."""
    return _random(6)


def new_loop_id() -> str:
    """Return a new loop's id, short enough to be typed."""
    return f"loop_{_random(6)}"


def new_run_id() -> str:
    """Return the id of a new run of a loop; no loop of any life of its session had it."""
    return f"run_{_random(16)}"
