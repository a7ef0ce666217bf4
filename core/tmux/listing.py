"""What tmux is asked about all panes and clients, in one line, and how its answer is read. Pure."""

import re
import signal
from collections.abc import Mapping
from datetime import UTC, datetime

from core.base.values import dataclass, field
from core.model.pane import Pane, Receipt, Typing
from core.model.session import LastExit
from core.tmux.guard import ANSWER, OURS
from core.tmux.transport import Line, silent

_STARTED = len(OURS) + 65  #: characters of a command line of ours: an instance has at most 64, and a blank follows
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
    "#{pane_tty}",
    "#{bracket_paste_flag}",  # empty before tmux 3.7
    *(f"#{{{receipt.value}}}" for receipt in Receipt),
    f"#{{?#{{m:{OURS}*,#{{pane_start_command}}}},#{{={_STARTED}:pane_start_command}},}}",
    "#{session_name}",  # last: the only one that may hold the separator
)
_CLIENT_FIELDS = (
    "client",  # tells these lines from those of panes, which begin with `%`
    "#{session_id}",
    "#{?client_control_mode,1,0}",
    "#{?client_readonly,1,0}",
    "#{client_activity}",
    "#{client_name}",
)
_PANE = re.compile(
    r"(?P<pane>%\d+)\|(?P<session>\$\d+)\|(?P<pid>-?\d+)\|(?P<dead>[01])\|(?P<status>\d*)\|(?P<signal>\w*)\|"
    r"(?P<mode>[01])\|(?P<off>[01])\|(?P<version>[^|]*)\|(?P<server>\d+)\|(?P<tty>[^|]*)\|(?P<bracket>[01]?)\|"
    rf"(?P<receipts>(?:[^|]*\|){{{len(Receipt)}}})(?P<started>.{{{_STARTED}}}|)\|(?P<name>.*)"
)
_CLIENT = re.compile(r"client\|(\$\d*|)\|([01])\|([01])\|(\d+)\|(.*)")

END = f"{ANSWER}listed"  #: proves that tmux has answered: an empty answer says nothing about what lives

LIST: Line = [
    ("list-panes", "-a", "-F", ANSWER + "|".join(_PANE_FIELDS)),
    ("list-clients", "-F", ANSWER + "|".join(_CLIENT_FIELDS)),
    ("display-message", "-p", END),
]


@dataclass(frozen=True)
class Listing:
    """All panes of a server, each once; the sessions that show each; the server's version and pid where a pane told.

    `writers` are the clients that can type, by session; `shown` the sessions that a client of a person shows.
    """

    panes: tuple[Pane, ...]
    sessions: Mapping[str, frozenset[str]]
    version: str = ""
    server: int | None = None
    writers: Mapping[str, tuple[Typing, ...]] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()

    def tagged(self, instance: str) -> Pane | None:
        """Return the pane that carries the tag."""
        return next((pane for pane in self.panes if pane.tag == instance), None)

    def typing(self) -> dict[str, tuple[Typing, ...]]:
        """Return the clients that can type into each tagged pane, those of sessions that share it as well."""
        if not self.writers:
            return {}
        return {
            pane.tag: tuple(
                client for session in self.sessions[pane.pane_id] for client in self.writers.get(session, ())
            )
            for pane in self.panes
            if pane.tag
        }

    def viewed(self) -> frozenset[str]:
        """Return the tags of the panes that a person's client shows, by whichever of the sessions that share them."""
        if not self.shown:
            return frozenset()
        return frozenset(pane.tag for pane in self.panes if pane.tag and self.sessions[pane.pane_id] & self.shown)


EMPTY = Listing((), {})


def read_listing(out: str) -> Listing:
    """Read the answer to LIST.

    tmux lists a window once for every session that shows it, linked or grouped: the pane counts for the oldest, which
    is the one that it was made in. What a hook of a person's prints into the answer is passed over. Raises TmuxSilent
    for an answer that is not understood, or lacks its end.
    """
    lines = out.split("\n")
    if END not in lines:
        raise silent(f"it did not answer: {out.strip()[:80]!r}")
    panes: dict[str, Pane] = {}
    sessions: dict[str, set[str]] = {}
    writers: dict[str, tuple[Typing, ...]] = {}
    clients: set[str] = set()
    version, server = "", None
    for line in (line.removeprefix(ANSWER) for line in lines if line.startswith(ANSWER) and line != END):
        found = _PANE.fullmatch(line)
        if found is None and (client := _CLIENT.fullmatch(line)):
            _add_client(clients, writers, client)
            continue
        if found is None:
            raise silent(f"it listed something else: {line[:80]!r}")
        pane = _pane(found)
        sessions.setdefault(pane.pane_id, set()).add(pane.session_id)
        known = panes.get(pane.pane_id)
        if known is None or int(pane.session_id[1:]) < int(known.session_id[1:]):
            panes[pane.pane_id] = pane
        version, server = found["version"], int(found["server"])
    sharing = {pane: frozenset(ids) for pane, ids in sessions.items()}
    return Listing(tuple(panes.values()), sharing, version, server, writers, frozenset(clients))


def _add_client(clients: set[str], writers: dict[str, tuple[Typing, ...]], client: re.Match[str]) -> None:
    """Add a client of a person, and to the writers unless it is read-only; control clients are programs."""
    session, control, readonly, activity, name = client.groups()
    if control == "1":
        return
    clients.add(session)
    if readonly == "0":
        typing = Typing(name, datetime.fromtimestamp(int(activity), UTC))
        writers[session] = (*writers.get(session, ()), typing)


def _pane(found: re.Match[str]) -> Pane:
    dead = found["dead"] == "1"
    tokens = zip(Receipt, found["receipts"].split("|"), strict=False)  # a separator stands after the last one, too
    return Pane(
        pane_id=found["pane"],
        session_id=found["session"],
        target=found["name"],
        tag=found["started"].removeprefix(OURS).partition(" ")[0],
        pid=int(found["pid"]),
        dead=dead,
        exit=_exit(found["status"], found["signal"]) if dead else None,
        in_mode=found["mode"] == "1",
        input_off=found["off"] == "1",
        tty=found["tty"],
        brackets={"1": True, "0": False}.get(found["bracket"]),
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
