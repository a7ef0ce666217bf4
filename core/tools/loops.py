"""The loop tools of an agent: those of its own session, and to it no others exist."""

from collections.abc import Callable, Sequence

from core.commands import exact_for
from core.domain import toolspecs
from core.domain.loopspec import Asked
from core.domain.tools import ToolAnswer
from core.loops.answers import LoopAnswer
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
from core.system import System
from core.tools.toolbox import Call, Tool

_Step = Callable[[System, Asker, str, str], LoopAnswer]


def loop_tools(system: System) -> Sequence[Tool]:
    """Return the tools."""

    def told(answer: LoopAnswer) -> ToolAnswer:
        content = answer.to_json()
        return ToolAnswer({**content, "said": exact_for(system, content["said"])})

    def step(verb: _Step) -> Callable[[Call], ToolAnswer]:
        def run(call: Call) -> ToolAnswer:
            return told(verb(system, _asker(call), call.arguments["id"], call.arguments.get("reason", "")))

        return run

    return (
        Tool(toolspecs.CREATE_LOOP, lambda call: told(create_loop(system, _asker(call), "", _asked(call)))),
        Tool(toolspecs.LIST_LOOPS, lambda call: told(list_loops(system, _asker(call)))),
        Tool(toolspecs.STOP_LOOP, step(stop_loop)),
        Tool(toolspecs.PAUSE_LOOP, step(pause_loop)),
        Tool(toolspecs.RESUME_LOOP, step(resume_loop)),
        Tool(toolspecs.RUN_LOOP_NOW, step(run_loop_now)),
        Tool(toolspecs.SCHEDULE_NEXT_RUN, lambda call: told(_schedule(system, call))),
    )


def _asker(call: Call) -> Asker:
    return Asker(call.actor, call.record.uid)


def _asked(call: Call) -> Asked:
    given = call.arguments
    return Asked(
        given["instruction"],
        given.get("interval"),
        given.get("cron"),
        given.get("time_zone"),
        given.get("keep_alive", False),
        given.get("max_runs"),
    )


def _schedule(system: System, call: Call) -> LoopAnswer:
    given = call.arguments
    return schedule_next_run(system, _asker(call), given["id"], given["delay"], given["reason"])
