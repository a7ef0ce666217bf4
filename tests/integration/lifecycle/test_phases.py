"""Every verb against every phase, and what people are told of a session that is being deleted."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from core.base.errors import CoreError, NameTaken, Refused
from core.base.names import new_instance, new_uid
from core.cli.printing import print_rows
from core.delivery.saying import queue_of, say
from core.lifecycle.announce import announce_standing
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.everything import start_all, status_all, stop_all
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import attach_command, get_standing, list_standing, screen
from core.lifecycle.pause import pause_standing, restart_standing, resume_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.loops.verbs import Asker, create_loop
from core.model.loop import LoopRequest
from core.model.rows import Answer
from core.model.session import Outcome, Phase, SessionRecord, Status
from core.session.system import System
from tests.support.tmux import PrivateTmux
from tests.support.world import ACTOR, World, definition, events, outcomes, recorded

EXTRA = "extra"
VERBS: Mapping[str, Callable[[System, str], object]] = {
    "start": lambda system, name: start_standing(system, name, ACTOR),
    "start every one": lambda system, name: start_standing(system, None, ACTOR),
    "start all": lambda system, name: start_all(system, ACTOR),
    "restart": lambda system, name: restart_standing(system, name, ACTOR),
    "stop": lambda system, name: stop_standing(system, name, ACTOR),
    "stop all": lambda system, name: stop_all(system, ACTOR),
    "delete": lambda system, name: delete_standing(system, name, ACTOR),
    "create": lambda system, name: create_standing(system, definition(name), ACTOR),
    "pause": lambda system, name: pause_standing(system, name, ACTOR),
    "resume": lambda system, name: resume_standing(system, name, ACTOR),
    "interrupt": lambda system, name: interrupt_standing(system, name, ACTOR),
    "announce": lambda system, name: announce_standing(system, name, ACTOR, wait=0),
    "say": lambda system, name: say(system, name, "hello", actor=ACTOR, wait=0),
    "queue": lambda system, name: queue_of(system, name),
    "attach": lambda system, name: attach_command(system.settings, system.records, system.runner, name, write=False),
    "screen": lambda system, name: screen(system, name, 10),
    "loop": lambda system, name: create_loop(system, Asker(ACTOR), name, LoopRequest("look around", interval="5m")),
    "reconcile": lambda system, name: reconcile(system, ACTOR),
    "status": lambda system, name: status_all(system, ()),
}


def _put(system: System, name: str, phase: Phase) -> SessionRecord:
    """Write a record that has come as far as this phase, and whose pane is gone."""
    running = phase in (Phase.CREATING, Phase.STARTING)
    record = SessionRecord(
        name,
        new_uid(),
        definition(name, slack=True),
        system.clock.now(),
        instance_id=new_instance(),
        status=Status.RUNNING if running else Status.STOPPED,
        phase=phase,
        declared=name != EXTRA,
    )
    system.records.write(record)
    return record


def _found(verb: Callable[[System, str], object], system: System, name: str) -> str:
    """Return what a verb says, as an error or in the session's row. What nobody foresaw is raised."""
    try:
        answer = verb(system, name)
    except CoreError as error:
        said = f"{error.message}; {error.remedy}" if error.remedy else f"no remedy: {error!r}"
    else:
        rows = answer.sessions if isinstance(answer, Answer) else ()
        said = next((row.detail for row in rows if row.name == name), "")
    assert not events(system, "standing.passed_over")
    assert "no remedy" not in said
    return said


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["scribe", EXTRA])
def test_no_verb_ends_in_what_nobody_foresaw(world: World, name: str, verb: str) -> None:
    """In whatever phase a verb was cut short, and whether the configuration declares the session or its record does."""
    system = replace(world, slack=True).system()
    (world.store / "broken").touch()  # so that nothing of one phase is left to the next

    for phase in Phase:
        _put(system, name, phase)
        _found(VERBS[verb], system, name)


def test_deletion_that_a_start_finishes_is_told(system: System, private: PrivateTmux) -> None:
    """Whoever starts or restarts what waits to be deleted gets no session, and hears that it is gone."""
    for verb in ("start", "restart"):
        _put(system, EXTRA, Phase.DELETING)

        said = _found(VERBS[verb], system, EXTRA)

        assert "extra was being deleted, and is gone now; create it again: `the-loop standing create extra`" in said
        assert system.records.read(EXTRA) is None
    _put(system, EXTRA, Phase.DELETING)
    assert outcomes(start_standing(system, None, ACTOR))[EXTRA] is Outcome.DELETED


def test_creation_that_a_start_clears_is_told(system: System) -> None:
    """It left nothing that could be started."""
    _put(system, EXTRA, Phase.CREATING)

    said = _found(VERBS["start"], system, EXTRA)

    assert "its creation was cut short, and nothing of it was kept; create it again" in said
    assert system.records.read(EXTRA) is None


def test_session_that_is_being_deleted_is_told_so_everywhere(
    world: World, private: PrivateTmux, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the rows of `list`, `get` and `status`, and by every verb that would have it run; none advises to start it."""
    system = replace(world, slack=True).system()
    private.tmux("new-session", "-d", "-s", "loop-standing-extra", "cat")
    _put(system, EXTRA, Phase.DELETING)

    rows = [get_standing(system, EXTRA), *(row for row in list_standing(system) if row.name == EXTRA)]
    rows += [row for row in status_all(system, ()).sessions if row.name == EXTRA]
    print_rows([row.to_json() for row in rows], str)
    refused = ("start", "restart", "stop", "create", "pause", "resume", "interrupt", "announce", "say", "attach")
    said = {verb: _found(VERBS[verb], system, EXTRA) for verb in (*refused, "loop")}

    assert len(rows) == 3
    assert all(row.detail.startswith("it is being deleted; ") for row in rows)
    assert all("tmux session loop-standing-extra holds its name" in row.detail for row in rows)
    assert capsys.readouterr().out.count(" deleting ") == 3
    assert {verb for verb, words in said.items() if "is being deleted" not in words} == set()
    assert {verb for verb, words in said.items() if "standing start extra" in words} == set()
    assert recorded(system, EXTRA).phase is Phase.DELETING
    with pytest.raises(NameTaken):
        create_standing(system, definition(EXTRA), ACTOR)
    with pytest.raises(Refused):
        announce_standing(system, EXTRA, ACTOR)
