"""stop: with what still works, and joined by a second one."""

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.failpoints import Failpoint, current_failpoint
from core.config.settings import HarnessDeclaration, Standing
from core.lifecycle.look import get_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.message import MessageState
from core.model.posts import OutboundKind, PostState
from core.model.session import Binding, Hold, HoldKind, Live, Outcome, Phase, Status
from core.session.system import System
from tests.support.tmux import PrivateTmux, alive, launcher, wait_until
from tests.support.world import ACTOR, World, definition, events, outcomes, recorded, waiting_message

ROOT = Path(__file__).parents[3]


def test_stop_by_name_cancels_the_queue_and_one_without_a_name_keeps_it(system: System) -> None:
    """Only `stop NAME` says that what waits is no longer wanted."""
    start_standing(system, None, ACTOR)
    kept, cancelled = waiting_message(system, "scribe"), waiting_message(system, "scribe-two")

    stop_standing(system, "scribe-two", ACTOR)
    stop_standing(system, None, ACTOR)

    states = [row.state for row in map(system.inbox.get, (kept.id, cancelled.id)) if row is not None]
    assert states == [MessageState.PENDING, MessageState.CANCELLED]


def bound(system: System, name: str) -> str:
    """Start the session, give it a thread and return its uid."""
    start_standing(system, name, ACTOR)
    record = recorded(system, name)
    system.bindings.bind(Binding("slack", "T1", "C1", "1.1", record.uid, name, system.clock.now()))
    return record.uid


def roots(system: System) -> list[str]:
    """Return how the root's edits that wait begin, and post them; beside them only notes of stops wait."""
    found = []
    while due := system.outbox.due("slack", system.clock.now()):
        for row in due:
            if row.post.kind is OutboundKind.NOTE:
                assert " was stopped by " in row.post.text
            else:
                assert row.post.kind is OutboundKind.ROOT_UPDATE
                found.append(row.post.text.splitlines()[0])
            system.outbox.advance(row, PostState.FAILED)
    return found


def test_root_says_who_stopped_the_session_and_what_starts_it(system: System) -> None:
    """Once, however often it is stopped."""
    bound(system, "scribe")

    for _ in range(2):
        stop_standing(system, "scribe", ACTOR, "lunch")

    [root] = roots(system)
    assert root.startswith(f"standing session `scribe` is stopped by {ACTOR} (lunch). To start it: `")
    assert root.endswith("standing start scribe`")


def test_a_reason_is_kept_as_words_for_people(system: System) -> None:
    """Bytes that are no UTF-8, what a terminal acts on, and more than anybody reads are left out; the stop is whole."""
    bound(system, "scribe")

    answer = stop_standing(system, "scribe", ACTOR, "\udcff\x1b[31mno\u202e\nmore " + 1000 * "x")

    hold = recorded(system, "scribe").hold
    [root] = roots(system)
    assert answer.ok
    assert hold is not None
    assert hold.reason.startswith("[31mno more xxx")
    assert len(hold.reason) <= 500
    assert "[31mno more xxx" in root


def test_a_mark_with_half_of_a_character_is_settled_and_shown(system: System) -> None:
    """Whoever wrote that into the record: no database keeps it, so that the sign for it stands in its place."""
    bound(system, "scribe")
    start_standing(system, "scribe", ACTOR)
    record = recorded(system, "scribe")
    hold = Hold(HoldKind.STOPPED, ACTOR, "half a pair \udcff", system.clock.now())
    system.records.write(replace(record, hold=hold, phase=Phase.STOPPING, status=Status.STOPPED))

    [done] = reconcile(system, ACTOR)

    assert (done.after, done.trouble) == (Phase.SETTLED, "")
    assert "half a pair \ufffd" in roots(system)[-1]
    assert events(system, "standing.announce_failed") == []


def test_root_says_that_a_session_is_down_and_then_that_it_is_stopped(system: System) -> None:
    """A stop of the whole is edited into the root too, and a later one by name after it."""
    bound(system, "scribe")

    stop_standing(system, None, ACTOR)
    stop_standing(system, None, ACTOR)
    stop_standing(system, "scribe", ACTOR)

    down, stopped = roots(system)
    assert "is down. The next `the-loop start` resumes it" in down
    assert "is stopped by" in stopped


def test_stop_without_a_name_sets_no_hold_and_keeps_the_generation(system: System) -> None:
    """What the-loop stops as a whole it brings back as a whole."""
    start_standing(system, "scribe", ACTOR)

    answer = stop_standing(system, None, ACTOR)

    record = system.records.read("scribe")
    assert record is not None
    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert (record.hold, record.generation, record.status, record.phase) == (None, 1, Status.STOPPED, Phase.SETTLED)


def test_stop_touches_no_session_whose_name_begins_alike(system: System) -> None:
    """`scribe` is no `scribe-two`."""
    start_standing(system, None, ACTOR)

    stop_standing(system, "scribe", ACTOR)

    assert get_standing(system, "scribe-two").live is Live.LIVE


def test_how_it_ended_and_what_it_showed_is_kept(system: System) -> None:
    """Exit status in the record, last output in the session's folder."""
    start_standing(system, "scribe", ACTOR)

    stop_standing(system, "scribe", ACTOR)

    record = system.records.read("scribe")
    assert record is not None
    assert record.last_exit is not None
    assert record.last_exit.status == 143
    assert "READY" in (system.paths.session(record.uid) / "last-output").read_text()


def test_harness_that_ignores_sigterm_is_killed_after_its_grace(world: World) -> None:
    """Politeness has an end."""
    (world.store / "stubborn").touch()
    system = replace(world, grace_seconds=0.3).system()
    start_standing(system, "scribe", ACTOR)
    [pane] = system.runner.survey().panes

    answer = stop_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert not system.processes.alive(pane.pid)


def test_two_stops_at_once_are_one(world: World) -> None:
    """The second waits for the first and finds its work done; the generation is raised once."""
    system = world.system()
    start_standing(system, "scribe", ACTOR)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: stop_standing(world.system(), "scribe", ACTOR), range(2)))

    record = system.records.read("scribe")
    assert record is not None
    assert record.generation == 2
    assert {row.outcome for answer in answers for row in answer.sessions} == {Outcome.STOPPED, Outcome.NOT_RUNNING}
    assert all(answer.ok for answer in answers)


def test_stop_of_a_declared_session_that_never_ran_marks_it(system: System) -> None:
    """The next boot does not start what somebody said to be stopped."""
    answer = stop_standing(system, "scribe", ACTOR, "not now")

    record = system.records.read("scribe")
    assert record is not None
    assert record.hold is not None
    assert outcomes(answer) == {"scribe": Outcome.NOT_RUNNING}
    assert (record.hold.reason, record.instance_id) == ("not now", None)


# ---------------------------------------------------------------- with what still works


def test_stop_works_with_a_damaged_database(system: System, world: World) -> None:
    """Processes and pane end, the mark is kept, and the row says what could not be cancelled."""
    start_standing(system, "scribe", ACTOR)
    for path in system.paths.local.glob("the-loop.db*"):
        path.write_bytes(b"no database" * 500)
    broken = world.system()

    answer = stop_standing(broken, "scribe", ACTOR)

    record = system.records.read("scribe")
    assert record is not None
    assert record.hold is not None
    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert "its queue could not be cancelled" in answer.sessions[0].detail
    assert broken.runner.survey().panes == ()


def test_stop_works_on_a_full_disk_and_says_that_the_mark_is_missing(world: World) -> None:
    """Everything ends; the row is failed, since the next boot would bring the session back."""
    system = world.system()
    start_standing(system, "scribe", ACTOR)
    described = world.save()
    command = [sys.executable, "-m", "tests.support.world", str(described), "stop", "scribe"]

    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    [row] = json.loads(done.stdout)["sessions"]
    assert (row["outcome"], done.returncode) == ("failed", 1)
    assert "it was ended, but" in row["detail"]
    assert "the stop could not be recorded" in row["detail"]
    assert system.runner.survey().panes == ()


def test_a_mark_that_was_recorded_at_the_end_is_not_called_missing(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that has room again once the session has ended keeps the mark with the rest of the record."""
    start_standing(system, "scribe", ACTOR)
    moving = os.replace

    def full(source: Path, target: Path) -> None:
        if current_failpoint() is Failpoint.STOP_MARK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        moving(source, target)

    monkeypatch.setattr(os, "replace", full)
    answer = stop_standing(system, "scribe", ACTOR)

    record = recorded(system, "scribe")
    assert record.hold is not None
    assert (outcomes(answer), answer.sessions[0].detail) == ({"scribe": Outcome.STOPPED}, "")


def test_unreadable_record_is_left_and_its_pane_is_ended(system: System) -> None:
    """A pane under the target that carries a tag of ours is ours to end; the file is a person's to repair."""
    start_standing(system, "scribe", ACTOR)
    path = system.paths.records / "scribe.json"
    path.write_text("{half")

    answer = stop_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.UNREADABLE}
    assert "was ended" in answer.sessions[0].detail
    assert path.read_text() == "{half"
    assert system.runner.survey().panes == ()


def test_silent_tmux_keeps_the_mark_and_reconcile_finishes(world: World, private: PrivateTmux) -> None:
    """The processes end by their marker at once; the pane goes when tmux answers again."""
    start_standing(world.system(), "scribe", ACTOR)
    system = replace(world, command_seconds=0.5).system()
    [pane] = world.system().runner.survey().panes

    with private.frozen():
        answer = stop_standing(system, "scribe", ACTOR)
        meanwhile = system.records.read("scribe")
        assert not system.processes.alive(pane.pid)
    reconcile(world.system(), ACTOR)

    after = system.records.read("scribe")
    assert meanwhile is not None
    assert after is not None
    assert outcomes(answer) == {"scribe": Outcome.UNCONFIRMED}
    assert answer.sessions[0].detail.count("no answer") == 1
    assert (meanwhile.phase, meanwhile.hold) == (Phase.STOPPING, after.hold)
    assert (after.phase, after.generation) == (Phase.SETTLED, 2)
    assert world.system().runner.survey().panes == ()


def test_silent_tmux_keeps_the_mark_of_a_session_that_never_ran(world: World, private: PrivateTmux) -> None:
    """Nobody knows what lives in its place; that it is to stay down is kept all the same."""
    start_standing(world.system(), "scribe-two", ACTOR)
    system = replace(world, command_seconds=0.5).system()

    with private.frozen():
        answer = stop_standing(system, "scribe", ACTOR)

    record = system.records.read("scribe")
    assert record is not None
    assert outcomes(answer) == {"scribe": Outcome.UNCONFIRMED}
    assert record.hold is not None


def test_reconcile_touches_nothing_while_tmux_is_silent(world: World, private: PrivateTmux) -> None:
    """A stop that was cut short stays as it is, until somebody can say what lives."""
    start_standing(world.system(), "scribe", ACTOR)
    system = replace(world, command_seconds=0.5).system()
    record = system.records.read("scribe")
    assert record is not None
    system.records.write(replace(record, phase=Phase.STOPPING))
    [pane] = world.system().runner.survey().panes

    with private.frozen():
        [found] = reconcile(system, ACTOR)

    assert (found.before, found.after) == (Phase.STOPPING, Phase.STOPPING)
    assert "no answer" in found.trouble
    assert system.processes.alive(pane.pid)


def test_foreign_session_in_its_place_is_left_alone(system: System, private: PrivateTmux) -> None:
    """The mark is set, nothing is signalled, and the row says what lives there."""
    start_standing(system, "scribe", ACTOR)
    record = system.records.read("scribe")
    assert record is not None
    system.runner.end(record.instance_id or "")
    pane, _ = private.reading(private.runner(), target="loop-standing-scribe")

    answer = stop_standing(system, "scribe", ACTOR)

    marked = system.records.read("scribe")
    assert marked is not None
    assert outcomes(answer) == {"scribe": Outcome.FAILED}
    assert (marked.hold is not None, marked.phase) == (True, Phase.SETTLED)
    assert system.processes.alive(pane.pid)
    assert events(system, "standing.held")


def test_what_the_harness_left_running_ends_with_it(world: World, system: System) -> None:
    """A background job in a session of its own is found by its marker."""
    start_standing(system, "scribe", ACTOR)
    record = system.records.read("scribe")
    assert record is not None
    environ = {**os.environ, "THE_LOOP_INSTANCE": record.instance_id or ""}
    job = subprocess.Popen(["sleep", "600"], env=environ, start_new_session=True)
    wait_until(lambda: job.pid in system.processes.marked(record.instance_id or ""), "the job is marked")

    stop_standing(system, "scribe", ACTOR)

    assert job.wait(timeout=10) != 0


def test_what_left_the_harness_for_good_ends_with_it(world: World) -> None:
    """A job that neither its parent, nor its terminal session, nor its environment tells of."""
    note, here = world.folder / "job", world.folder / "here"
    here.touch()
    job = launcher(world.folder / "job.sh", f"echo $$ > {note}; while [ -e {here} ]; do sleep 0.2; done")
    agent = launcher(world.folder / "leaver", f"setsid -f env -i {job}; echo READY; while :; do sleep 1; done")
    leaving = {"leaving": HarnessDeclaration("leaving", (str(agent),), ready="READY")}
    declared = Standing(True, (definition("scribe", harness="leaving"),))
    system = world.system(world.settings()._replace(harnesses=leaving, standing=declared))
    start_standing(system, "scribe", ACTOR)
    wait_until(lambda: note.exists() and note.read_text().endswith("\n"), "the job runs")

    answer = stop_standing(system, "scribe", ACTOR)

    left = alive(int(note.read_text()))
    here.unlink()
    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert not left
