"""What `list-panes` and `list-clients` are asked, and how their answers are read. Pure."""

import re
import signal
from collections.abc import Mapping
from datetime import UTC, datetime

from core.domain.pane import Pane, Receipt, Typing
from core.domain.session import LastExit
from core.tmux.guard import TAG
from core.tmux.language import Line
from core.tmux.transport import silent
from core.values import dataclass

_PANE_FIELDS = (
    "#{pane_id}",
    "#{session_id}",
    "#{pane_pid}",
    "#{?pane_dead,1,0}",
    "#{pane_dead_status}",
    "#{pane_dead_signal}",
    "#{?pane_in_mode,1,0}",
    "#{?pane_input_off,1,0}",
    "#{version}",
    "#{pid}",
    f"#{{{TAG}}}",
    *(f"#{{{receipt.value}}}" for receipt in Receipt),
    "#{session_name}",  # last: the only one that may hold the separator
)
_CLIENT_FIELDS = (
    "#{session_id}",
    "#{?client_control_mode,1,0}",
    "#{?client_readonly,1,0}",
    "#{client_activity}",
    "#{client_name}",
)
_PANE = re.compile(
    r"(?P<pane>%\d+)\|(?P<session>\$\d+)\|(?P<pid>-?\d+)\|(?P<dead>[01])\|(?P<status>\d*)\|(?P<signal>\w*)\|"
    r"(?P<mode>[01])\|(?P<off>[01])\|(?P<version>[^|]*)\|(?P<server>\d+)\|(?P<tag>[^|]*)\|"
    rf"(?P<receipts>(?:[^|]*\|){{{len(Receipt)}}})(?P<name>.*)"
)
_CLIENT = re.compile(r"(\$\d*|)\|([01])\|([01])\|(\d+)\|(.*)")

LIST_PANES: Line = [("list-panes", "-a", "-F", "|".join(_PANE_FIELDS))]
LIST_CLIENTS: Line = [("list-clients", "-F", "|".join(_CLIENT_FIELDS))]


@dataclass(frozen=True)
class Listing:
    """All panes of a server, each once; the sessions that show each; the server's version and pid where a pane told."""

    panes: tuple[Pane, ...]
    sessions: Mapping[str, frozenset[str]]
    version: str = ""
    server: int | None = None

    def tagged(self, instance: str) -> Pane | None:
        """Return the pane that carries the tag."""
        return next((pane for pane in self.panes if pane.tag == instance), None)


EMPTY = Listing((), {})


def read_panes(out: str) -> Listing:
    """Read the answer to LIST_PANES.

    tmux lists a window once for every session that shows it, linked or grouped: the pane counts for the oldest, which
    is the one that it was made in. Raises TmuxSilent for an answer that is not understood.
    """
    panes: dict[str, Pane] = {}
    sessions: dict[str, set[str]] = {}
    version, server = "", None
    for line in out.splitlines():
        found = _PANE.fullmatch(line)
        if found is None:
            raise silent(f"list-panes answered something else: {line[:80]!r}")
        pane = _pane(found)
        sessions.setdefault(pane.pane_id, set()).add(pane.session_id)
        known = panes.get(pane.pane_id)
        if known is None or int(pane.session_id[1:]) < int(known.session_id[1:]):
            panes[pane.pane_id] = pane
        version, server = found["version"], int(found["server"])
    return Listing(tuple(panes.values()), {pane: frozenset(ids) for pane, ids in sessions.items()}, version, server)


def read_clients(out: str, sessions: frozenset[str]) -> tuple[Typing, ...]:
    """Read the answer to LIST_CLIENTS: those attached to one of the sessions that can type there."""
    typing = []
    for line in out.splitlines():
        found = _CLIENT.fullmatch(line)
        if found is None:
            raise silent(f"list-clients answered something else: {line[:80]!r}")
        session, control, readonly, activity, name = found.groups()
        if session in sessions and control == "0" and readonly == "0":
            typing.append(Typing(name, datetime.fromtimestamp(int(activity), UTC)))
    return tuple(typing)


def _pane(found: re.Match[str]) -> Pane:
    dead = found["dead"] == "1"
    tokens = zip(Receipt, found["receipts"].split("|"), strict=False)  # a separator stands after the last one, too
    return Pane(
        pane_id=found["pane"],
        session_id=found["session"],
        target=found["name"],
        tag=found["tag"],
        pid=int(found["pid"]),
        dead=dead,
        exit=_exit(found["status"], found["signal"]) if dead else None,
        in_mode=found["mode"] == "1",
        input_off=found["off"] == "1",
        receipts={receipt: token for receipt, token in tokens if token},
    )


def _exit(status: str, killed_by: str) -> LastExit | None:
    number = _signal(killed_by)
    if number is not None:
        return LastExit(None, number)
    return LastExit(int(status), None) if status else None


def _signal(text: str) -> int | None:
    """Return the signal's number; tmux writes it as a number or, by version and system, as a name."""
    if text.isdigit():
        return int(text)
    name = text if text.startswith("SIG") else f"SIG{text}"
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else None
