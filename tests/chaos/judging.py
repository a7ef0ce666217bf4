"""What was said, compared with what the agents' conversation files hold. Pure but for the reading at the end."""

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from tests.support.product import Product

_TOKEN = re.compile(r"reply-(\d+)-end")
_TICK = re.compile(r"\[the-loop #(\w+)\] This is an automated tick")
_OPEN = ("pending", "queued", "claimed", "pasted", "submitted", "accepted")
_NOT_IN = ("unknown", "refused", "expired", "cancelled", "failed")
_NOTED = ("It is not known whether", "did not go in")
_SILENT = "was last heard of at"
_ARRIVED = frozenset({"eyes", "keyboard", "white_check_mark"})  #: reactions that say that the agent has it
_FAILED = frozenset({"x", "question"})  #: and those that say that it has not, or may not


@dataclass(frozen=True)
class Said:
    """A person's reply in the thread of a session."""

    number: int
    person: str
    session: str
    ts: str

    @property
    def text(self) -> str:
        """Return the words of the reply."""
        return text_of(self.number)


def text_of(number: int) -> str:
    """Return the words of a reply, which nothing else in a conversation contains."""
    return f"reply-{number}-end"


def numbers_in(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the replies that the texts hold, in order."""
    return [int(number) for text in texts for number in _TOKEN.findall(text)]


@dataclass(frozen=True)
class Verdict:
    """What went wrong: each a list of replies, in words; empty lists all through mean that nothing did."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misrouted: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    ticks: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    reposted: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> Mapping[str, list[str]]:
        """Return the lists by the words that name them."""
        return {
            "lost": self.lost,
            "doubled": self.doubled,
            "misrouted": self.misrouted,
            "out of order (per person and session)": self.disordered,
            "unknown reported": self.unknown,
            "unknowns not said": self.unsaid,
            "not settled": self.open,
            "ticks doubled": self.ticks,
            "marks and notes that are not so": self.untrue,
            "posts doubled": self.reposted,
        }

    @property
    def good(self) -> bool:
        """Return whether nothing went wrong."""
        return not any(self.kinds.values())

    def __str__(self) -> str:
        shown = [
            f"  {kind}: {len(found)}" + (f"  {'; '.join(found[:8])}" if found else "")
            for kind, found in self.kinds.items()
        ]
        return "\n".join(shown)


@dataclass(frozen=True)
class Row:
    """What the inbox says of a reply in the end."""

    ts: str
    state: str
    detail: str
    doubted: bool  #: it was reported as unknown at some time
    noted: bool  #: its thread was told so


def doubled_ticks(session: str, texts: Sequence[str]) -> list[str]:
    """Return the ticks of loops that the session's turns took more than once."""
    markers = Counter(marker for text in texts for marker in _TICK.findall(text))
    return [f"tick {marker} in {session}" for marker, count in markers.items() if count > 1]


def judge(said: Sequence[Said], taken: Mapping[str, Sequence[int]], rows: Mapping[str, Row]) -> Verdict:
    """Compare what was said with what each session took, and with the inbox's rows by time stamp."""
    verdict = Verdict()
    wanted = {one.number: one for one in said}
    places: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for session, numbers in taken.items():
        for place, number in enumerate(numbers):
            places[number].append((session, place))
    for one in said:
        row = rows.get(one.ts)
        words = _described(one, row)
        found = Counter(session for session, _ in places[one.number])
        if not found[one.session] and not (row and row.state == "unknown"):
            verdict.lost.append(words)
        if found[one.session] > 1:
            verdict.doubled.append(words)
        verdict.misrouted.extend(f"{words} in {session}" for session in found if session != one.session)
        if row is not None and row.state == "unknown":
            verdict.unknown.append(f"{words}, {'taken' if found else 'not taken'}")
        if row is not None and row.doubted and not row.noted:
            verdict.unsaid.append(words)
        if row is None or row.state in _OPEN:
            verdict.open.append(words)
    for session, numbers in taken.items():
        verdict.disordered.extend(_inversions(session, numbers, wanted))
    return verdict


def untrue_marks(
    said: Sequence[Said], taken: Mapping[str, Sequence[int]], marks: Mapping[str, Collection[str]]
) -> list[str]:
    """Return the reactions that contradict what the agents took; `marks` are the bot's, by the replies' time stamps."""
    found = list[str]()
    for one in said:
        wrong = _FAILED if one.number in taken[one.session] else _ARRIVED
        found.extend(f"{mark} at {one.number} to {one.session}" for mark in sorted(wrong & set(marks.get(one.ts, ()))))
    return found


def untrue_notes(session: str, texts: Sequence[str], rows: Collection[Row], *, silent: bool) -> list[str]:
    """Return what the bot wrote in a session's thread that was never so.

    `rows` are those of the session; `silent`: whether its host was ever away for long enough to be told of.
    """
    doubted = any(row.doubted or row.state in _NOT_IN for row in rows)
    wrong = [] if silent else [text for text in texts if _SILENT in text]
    wrong += [] if doubted else [text for text in texts if any(words in text for words in _NOTED)]
    return [f"{session}: {text[:160]!r}" for text in wrong]


def doubled_posts(session: str, texts: Sequence[str]) -> list[str]:
    """Return what the bot wrote in a session's thread more than once."""
    return [f"{session}: {count} times {text[:80]!r}" for text, count in Counter(texts).items() if count > 1]


def _described(one: Said, row: Row | None) -> str:
    state = f"{row.state} {row.detail}".strip() if row else "no row"
    return f"{one.number} of {one.person} to {one.session} at {one.ts} ({state})"


def _inversions(session: str, numbers: Sequence[int], wanted: Mapping[int, Said]) -> list[str]:
    found, latest = [], dict[str, int]()
    for number in numbers:
        one = wanted.get(number)
        if one is None or one.session != session:
            continue
        before = latest.get(one.person, -1)
        if number < before:
            found.append(f"{number} after {before} of {one.person} in {session}")
        latest[one.person] = max(number, before)
    return found


def rows_of(product: Product, threads: Mapping[str, str]) -> dict[str, Row]:
    """Return the inbox's rows by the replies' time stamps; `threads` are the sessions' own."""
    told = {message["ts"] for thread in threads.values() for message in product.workspace.replies("agents", thread)}
    doubted = {event["message"] for event in product.events("standing.unconfirmed") if event["detail"] == "unknown"}
    with closing(sqlite3.connect(f"file:{product.paths.database}?mode=ro", uri=True, timeout=20)) as database:
        notes = database.execute(
            "SELECT buttons, text, ts FROM outbox WHERE note_group <> '' AND state = 'sent'"
        ).fetchall()
        inbox = database.execute("SELECT id, from_ts, state, reason FROM inbox WHERE from_ts IS NOT NULL").fetchall()
    named = [buttons for buttons, text, ts in notes if any(said in text for said in _NOTED) and ts in told and buttons]
    noted = {ident for buttons in named for button in json.loads(buttons) for ident in button[1].split()}
    return {ts: Row(ts, state, detail, ident in doubted, ident in noted) for ident, ts, state, detail in inbox}
