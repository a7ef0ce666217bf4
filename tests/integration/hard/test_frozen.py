"""A tmux server that is stopped: every verb answers in time and truthfully, and what was begun is finished later."""

import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.base.clock import iso
from tests.integration.hard.stage import at_once, declare, frozen, started, taken_texts, wait_taken
from tests.support.product import Done, Product, Serving
from tests.support.tmux import Counted, alive, wait_until

SECONDS = 2  #: routing.tmux.commandTimeoutSeconds while the server is stopped
GRACE = 1  #: routing.tmux.harnessKillGraceSeconds meanwhile

VERBS = {
    "list": (("standing", "list", "--json"), 1),
    "get": (("standing", "get", "idle", "--json"), 1),
    "status": (("status", "--json"), 2),
    "attach": (("standing", "attach", "idle", "--json"), 1),
    "screen": (("standing", "screen", "idle", "--json"), 1),
    "screen --window": (("standing", "screen", "idle", "--window", "--history", "--json"), 1),
    "start": (("standing", "start", "down", "--json"), 2),
    "start live": (("standing", "start", "idle", "--json"), 2),
    "restart": (("standing", "restart", "again", "--json"), 2),
    "create": (("standing", "create", "fresh", "--json"), 2),
    "stop": (("standing", "stop", "halt", "--json"), 2),
    "delete": (("standing", "delete", "gone", "--json"), 2),
    "say": (("standing", "say", "idle", "--text", "never mind", "--json"), 2),
}  #: with how many questions each may put to tmux, each of which takes as long as the deadline


@dataclass
class Spell:
    """What was seen while the server was stopped, and what it was before."""

    product: Product
    service: Serving | None
    answers: dict[str, Done]
    questions: dict[str, int]
    before: dict[str, Any]
    during: dict[str, Any]
    pids: dict[str, int]
    living: set[str]

    def json(self, verb: str) -> Any:
        """Return a verb's answer."""
        return json.loads(self.answers[verb].out)

    def row(self, verb: str) -> dict[str, Any]:
        """Return the only row of a verb's answer."""
        [row] = self.json(verb)["sessions"]
        return dict(row)


def let_expire(product: Product, message_id: str) -> None:
    """Let a message that waits have waited for a day.

    It counts as another attempt: who looks at tmux at that very moment has read the row before, and may not claim it.
    """
    with closing(sqlite3.connect(product.paths.database, timeout=20)) as database, database:
        yesterday = iso(datetime.now(UTC) - timedelta(days=1))
        database.execute("UPDATE inbox SET updated_at = ?, attempt = attempt + 1 WHERE id = ?", (yesterday, message_id))


def records(product: Product) -> dict[str, Any]:
    """Return every record as it stands on the disk; one that is removed while we look is none."""
    found: dict[str, Any] = {}
    for path in product.paths.records.glob("*.json"):
        with suppress(FileNotFoundError):
            found[path.stem] = json.loads(path.read_text())
    return found


@pytest.fixture(params=[pytest.param("commands alone", marks=pytest.mark.long), "with the service"])
def spell(request: pytest.FixtureRequest, alone: Product) -> Spell:
    """Give what every verb answered, all at once, while the server was stopped; it goes on again."""
    names = ("idle", "halt", "again", "down")
    declare(alone, *names)
    started(alone, *names)
    assert alone.cli("standing", "create", "gone").code == 0
    assert alone.cli("standing", "stop", "down").code == 0
    declare(alone, *names, tmux={"commandTimeoutSeconds": SECONDS, "harnessKillGraceSeconds": GRACE})
    service = alone.serve().wait_swept() if "service" in request.param else None
    before, pids = records(alone), alone.panes()
    counted = {verb: Counted(alone.folder / f"tmux-of-{number}") for number, verb in enumerate(VERBS)}
    with frozen(alone):
        commands, environs = (
            [words for words, _ in VERBS.values()],
            [each.environ(alone.environ()) for each in counted.values()],
        )
        answers = dict(zip(VERBS, at_once(alone, commands, environs), strict=True))
        questions = {verb: each.questions() for verb, each in counted.items()}
        during, living = records(alone), {name for name, pid in pids.items() if alive(pid)}
        alone.wait_event("standing.queued")  # told by whoever delivers, once it has looked: the say may answer before
        let_expire(alone, json.loads(answers["say"].out)["messageId"])
    declare(alone, *names)
    return Spell(alone, service, answers, questions, before, during, pids, living)


def test_every_verb_answers_in_time_and_truthfully_and_is_finished_later(spell: Spell) -> None:
    """Nothing is called absent, stopped or dead; marks are kept, and completed once tmux answers again."""
    check_in_time(spell)
    check_looks(spell)
    check_verbs(spell)
    check_records(spell)
    check_message(spell)
    check_finished(spell)


def check_in_time(spell: Spell) -> None:
    """Each verb has ended, and put to tmux no more questions than it needs: each may take as long as the deadline."""
    most = {verb: questions for verb, (_, questions) in VERBS.items()}
    assert {verb: asked for verb, asked in spell.questions.items() if not 0 < asked <= most[verb]} == {}


def check_looks(spell: Spell) -> None:
    """What only looks says that it does not know."""
    rows = [*spell.json("list"), spell.json("get"), *spell.json("status")["standingSessions"]]
    assert {(row["live"], row["running"]) for row in rows} == {("unknown", None)}
    assert all("tmux" in row["detail"] for row in rows)
    assert [spell.answers[verb].code for verb in ("list", "get", "status")] == [0, 0, 1]
    for verb in ("attach", "screen", "screen --window"):
        assert (spell.answers[verb].code, spell.json(verb)["error"]["code"]) == (1, "tmux_silent")
    if spell.service is not None:
        assert spell.json("status")["services"][0]["running"] is True


def check_verbs(spell: Spell) -> None:
    """What acts is unconfirmed, with exit 1; a message is queued, with exit 0."""
    for verb in ("start", "start live", "restart", "create", "stop", "delete"):
        row = spell.row(verb)
        assert (verb, row["outcome"], row["live"]) == (verb, "unconfirmed", "unknown")
        assert "tmux" in row["detail"], verb
        assert spell.answers[verb].code == 1, verb
    said = spell.json("say")
    assert (spell.answers["say"].code, said["state"], said["delivered"]) == (0, "queued", False)
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
