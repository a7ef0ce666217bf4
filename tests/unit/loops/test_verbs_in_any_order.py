"""Whatever is done to a session's loops, in whatever order, what is promised of them holds."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import Refused
from core.config.settings import Settings
from core.loops.verbs import (
    Asker,
    create_loop,
    list_loops,
    pause_loop,
    resume_loop,
    run_loop_now,
    schedule_next_run,
    stop_loop,
)
from core.model.loop import OPEN, LoopRequest
from core.service.wiring import build_system
from core.session.system import System
from tests.unit.loops.conftest import a_session

ANN = Asker("cli:ann")
ASKED = (
    LoopRequest("by interval", interval="5m", keep_alive=True),
    LoopRequest("by cron", cron="*/5 * * * *"),
    LoopRequest("by its agent"),
)
VERBS: tuple[Callable[[System, str], object], ...] = (
    lambda system, loop: stop_loop(system, ANN, loop),
    lambda system, loop: pause_loop(system, ANN, loop),
    lambda system, loop: resume_loop(system, ANN, loop),
    lambda system, loop: run_loop_now(system, ANN, loop),
    lambda system, loop: schedule_next_run(system, ANN, loop, "5m"),
)
STEPS = st.lists(st.tuples(st.integers(-3, len(VERBS) - 1), st.integers(0, 7)), max_size=25)


def _do(system: System, step: int, place: int) -> None:
    loops = list_loops(system.settings, system.records, system.loops, ANN, "scribe").loops
    try:
        if step < 0:
            create_loop(system, ANN, "scribe", ASKED[step])
        elif loops:
            VERBS[step](system, loops[place % len(loops)].id)
    except Refused:
        return  # by the loop's state, or for want of room


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_ends_are_final_and_room_is_kept(steps: list[tuple[int, int]]) -> None:
    """No loop comes back, no session has too many, and what is open has a time."""
    with tempfile.TemporaryDirectory() as folder:
        system = build_system(Settings(Path(folder) / "state"), {})
        system.records.write(a_session("scribe"))
        ended: set[str] = set()
        for step, place in steps:
            _do(system, step, place)

            loops = system.loops.of_session("s-scribe")
            assert ended <= {loop.id for loop in loops if loop.status not in OPEN}
            ended = {loop.id for loop in loops if loop.status not in OPEN}
            assert len(loops) - len(ended) <= 5
            assert all((loop.ended_at is None) == (loop.status in OPEN) for loop in loops)
            assert all(loop.next_run_at is None for loop in loops if loop.status not in OPEN)
            assert all(loop.next_run_at is not None for loop in loops if loop.status in OPEN)
        system.close()
