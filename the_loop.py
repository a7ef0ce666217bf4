"""The door for importers: `the_loop.connect().standing.list()`. Everything else is inside."""

import os
from collections.abc import Mapping
from pathlib import Path

from core.base.environment import absolute_entries
from core.base.errors import CoreError
from core.config.loading import load
from core.delivery.saying import Queue, Said, cancel_message, queue_of, say
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import Logs, get_standing, list_standing, logs_of
from core.lifecycle.pause import pause_standing, restart_standing, resume_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.rows import Answer, Row
from core.model.session import ChatBinding, Definition
from core.process.presence import user_name
from core.service.wiring import build_system
from core.session.system import System

__all__ = [
    "Answer",
    "ChatBinding",
    "CoreError",
    "Definition",
    "Logs",
    "Loop",
    "Queue",
    "Row",
    "Said",
    "Standing",
    "connect",
]


def connect(config: Path | None = None, environ: Mapping[str, str] | None = None) -> "Loop":
    """Return the-loop as the configuration has it; see `the-loop config path` for which file that is.

    Raises ConfigError with everything that is wrong with the file.
    """
    env = dict(os.environ if environ is None else environ)
    if "PATH" in env:
        env["PATH"] = absolute_entries(env["PATH"])
    return Loop(build_system(load(config, env), env))


class Loop:
    """One the-loop."""

    def __init__(self, system: System) -> None:
        self.standing = Standing(system, f"cli:{user_name()}")


class Standing:
    """The verbs on standing sessions, as `the-loop standing …` has them; a session's failure is a row."""

    def __init__(self, system: System, actor: str) -> None:
        self._system = system
        self._actor = actor

    def list(self) -> tuple[Row, ...]:
        """Return every declared and recorded session."""
        return list_standing(self._system)

    def get(self, name: str) -> Row:
        """Return one session's row. Raises UnknownSession."""
        return get_standing(self._system, name)

    def create(self, definition: Definition, *, start: bool = True) -> Answer:
        """Make a session. Raises InvalidValue, NameTaken."""
        return create_standing(self._system, definition, self._actor, start=start)

    def delete(self, name: str) -> Answer:
        """Stop a created session and forget it. Raises UnknownSession, DeclaredSession."""
        return delete_standing(self._system, name, self._actor)

    def start(self, name: str | None = None) -> Answer:
        """Bring a session up, or every one that is not held. Raises UnknownSession."""
        return start_standing(self._system, name, self._actor)

    def stop(self, name: str | None = None, reason: str = "") -> Answer:
        """End a session gracefully, or every one. Raises UnknownSession."""
        return stop_standing(self._system, name, self._actor, reason)

    def restart(self, name: str) -> Answer:
        """End the session gracefully and resume its conversation. Raises UnknownSession, Refused."""
        return restart_standing(self._system, name, self._actor)

    def say(self, name: str, text: str, *, wait: float = 30.0) -> Said:
        """Put a message into the agent's terminal, once, and wait for evidence. Raises NotRunning, InvalidValue."""
        return say(self._system, name, text, actor=self._actor, raw=False, wait=wait)

    def pause(self, name: str, reason: str = "", *, hard: bool = False) -> Answer:
        """Let no further turn begin; `hard` interrupts the one that runs. Raises UnknownSession, Refused."""
        return pause_standing(self._system, name, self._actor, reason, hard=hard)

    def resume(self, name: str) -> Answer:
        """End a pause; what waited goes in, in order. Raises UnknownSession, NotRunning."""
        return resume_standing(self._system, name, self._actor)

    def interrupt(self, name: str) -> Answer:
        """End the turn that runs, or reject the open dialog. Raises UnknownSession, NotRunning, Refused."""
        return interrupt_standing(self._system, name, self._actor)

    def queue(self, name: str) -> Queue:
        """Return what is on its way to the session and what waits, in order. Raises UnknownSession."""
        return queue_of(self._system, name)

    def cancel(self, message_id: str) -> None:
        """Cancel a message that waits. Raises UnknownMessage, Refused."""
        cancel_message(self._system, message_id, self._actor)

    def logs(self, name: str, lines: int = 50) -> Logs:
        """Return what the session's terminal showed last. Raises UnknownSession, NotRunning, TmuxSilent."""
        return logs_of(self._system, name, lines)
