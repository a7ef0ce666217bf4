"""A tmux server that is stopped: every verb answers in time and truthfully, and what was begun is finished later."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.hard.stage import Timed, at_once, declare, frozen, started, taken_texts, wait_taken
from tests.support.product import Product, Serving
from tests.support.tmux import alive, wait_until

SECONDS = 2  #: routing.tmux.commandTimeoutSeconds
GRACE = 2  #: routing.tmux.harnessKillGraceSeconds
EXPIRY = 4.5  #: seconds that a message waits for tmux
MARGIN = 8.0  #: for a dozen processes that start at once on a loaded machine

VERBS = {
    "list": (("standing", "list", "--json"), 1),
    "get": (("standing", "get", "idle", "--json"), 1),
    "status": (("status", "--json"), 1),
    "attach": (("standing", "attach", "idle", "--json"), 1),
    "screen": (("standing", "screen", "idle", "--json"), 1),
    "start": (("standing", "start", "down", "--json"), 2),
    "start live": (("standing", "start", "idle", "--json"), 4),  # it waits for the look of the say
    "restart": (("standing", "restart", "again", "--json"), 2),
    "create": (("standing", "create", "fresh", "--json"), 2),
    "stop": (("standing", "stop", "halt", "--json"), 3 + GRACE / SECONDS),
    "delete": (("standing", "delete", "gone", "--json"), 2 + GRACE / SECONDS),
    "say": (("standing", "say", "idle", "--text", "never mind", "--wait", "3", "--json"), 1 + 3 / SECONDS),
}  #: with how many times the command's deadline each may take


@dataclass
class Spell:
    """What was seen while the server was stopped, and what it was before."""

    product: Product
    service: Serving | None
    answers: dict[str, Timed]
    before: dict[str, Any]
    during: dict[str, Any]
    pids: dict[str, int]
    living: set[str]

    def json(self, verb: str) -> Any:
        """Return a verb's answer."""
        return json.loads(self.answers[verb].done.out)

    def row(self, verb: str) -> dict[str, Any]:
        """Return the only row of a verb's answer."""
        [row] = self.json(verb)["sessions"]
        return dict(row)


def records(product: Product) -> dict[str, Any]:
    """Return every record as it stands on the disk; one that is removed while we look is none."""
    found: dict[str, Any] = {}
    for path in product.paths.records.glob("*.json"):
        with suppress(FileNotFoundError):
            found[path.stem] = json.loads(path.read_text())
    return found


@pytest.fixture(params=["commands alone", "with the service"])
def spell(request: pytest.FixtureRequest, alone: Product) -> Spell:
    """Give what every verb answered, all at once, while the server was stopped; it goes on again."""
    declare(
        alone,
        *("idle", "halt", "again", "down"),
        tmux={"commandTimeoutSeconds": SECONDS},
        limits={"messageExpiryMinutes": EXPIRY / 60},
    )
    service = alone.serve().wait_swept() if "service" in request.param else None
    if service is None:
        started(alone, "idle", "halt", "again", "down")
    assert alone.cli("standing", "create", "gone").code == 0
    assert alone.cli("standing", "stop", "down").code == 0
    before, pids = records(alone), alone.panes()
    with frozen(alone):
        timed = at_once(alone, [words for words, _ in VERBS.values()])
        answers = dict(zip(VERBS, timed, strict=True))
        during, living = records(alone), {name for name, pid in pids.items() if alive(pid)}
        [queued] = alone.events("standing.queued")
        until = datetime.fromisoformat(queued["ts"]) + timedelta(seconds=EXPIRY)
        wait_until(lambda: datetime.now(UTC) > until, "the message's time is over")
    return Spell(alone, service, answers, before, during, pids, living)


def test_every_verb_answers_in_time_and_truthfully_and_is_finished_later(spell: Spell) -> None:
    """Nothing is called absent, stopped or dead; marks are kept, and completed once tmux answers again."""
    check_in_time(spell)
    check_looks(spell)
    check_verbs(spell)
    check_records(spell)
    check_message(spell)
    check_finished(spell)


def check_in_time(spell: Spell) -> None:
    """Each verb keeps to as many deadlines as it asks tmux questions."""
    for verb, (_, times) in VERBS.items():
        assert spell.answers[verb].seconds < times * SECONDS + MARGIN, verb


def check_looks(spell: Spell) -> None:
    """What only looks says that it does not know."""
    rows = [*spell.json("list"), spell.json("get"), *spell.json("status")["standingSessions"]]
    assert {(row["live"], row["running"]) for row in rows} == {("unknown", None)}
    assert all("tmux" in row["detail"] for row in rows)
    assert [spell.answers[verb].done.code for verb in ("list", "get", "status")] == [0, 0, 1]
    for verb in ("attach", "screen"):
        assert (spell.answers[verb].done.code, spell.json(verb)["error"]["code"]) == (1, "tmux_silent")
    if spell.service is not None:
        assert spell.json("status")["services"][0]["running"] is True


def check_verbs(spell: Spell) -> None:
    """What acts is unconfirmed, with exit 1; a message is queued, with exit 0."""
    for verb in ("start", "start live", "restart", "create", "stop", "delete"):
        row = spell.row(verb)
        assert (verb, row["outcome"], row["live"]) == (verb, "unconfirmed", "unknown")
        assert "tmux" in row["detail"], verb
        assert spell.answers[verb].done.code == 1, verb
    said = spell.json("say")
    assert (spell.answers["say"].done.code, said["state"], said["delivered"]) == (0, "queued", False)
    assert "tmux does not answer" in said["messages"][0]


def check_records(spell: Spell) -> None:
    """A start leaves no trace, a stop and a delete their marks; the ended ones' processes are gone, no others."""
    for name in ("idle", "again", "down"):
        assert spell.during[name] == spell.before[name]
    assert "fresh" not in spell.during
    halted, gone = spell.during["halt"], spell.during["gone"]
    assert (halted["phase"], halted["hold"]["kind"], halted["status"]) == ("stopping", "stopped", "stopped")
    assert gone["phase"] == "deleting"
    assert spell.living == {"idle", "again"}
    told = {event["name"] for event in spell.product.events("standing.exited", "standing.stopped", "standing.deleted")}
    assert told <= {"down"}


def check_message(spell: Spell) -> None:
    """The message that expired meanwhile is never delivered; the next one is, once.

    It may be queued first: for two seconds after a silence the service does not ask again.
    """
    after = spell.product.cli("standing", "say", "idle", "--text", "and after", "--json")
    assert (after.code, after.json["state"] in ("confirmed", "queued")) == (0, True)
    wait_taken(spell.product, "idle", "and after")
    assert taken_texts(spell.product, "idle") == ["and after"]
    assert "never mind" not in spell.product.screen("idle")


def check_finished(spell: Spell) -> None:
    """With a service by itself, else by the next start: the stopped one is settled, the deleted one forgotten."""
    product = spell.product
    if spell.service is None:
        assert product.cli("standing", "start", "idle").code == 0
        assert product.cli("start", "--json").json["standingSessions"]
    wait_until(lambda: "gone" not in records(product), "the deletion is finished")
    wait_until(lambda: records(product)["halt"]["phase"] == "settled", "the stop is finished")
    assert records(product)["halt"]["hold"]["kind"] == "stopped"
    assert {name: pid for name, pid in product.panes().items() if name in ("idle", "again")} == {
        name: spell.pids[name] for name in ("idle", "again")
    }
    assert set(product.panes()) == {"idle", "again"}
