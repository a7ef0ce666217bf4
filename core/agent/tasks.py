"""Background tasks: real processes that outlive the turn, and the notification that each ends in."""

import os
import subprocess


class Tasks:
    """The background processes of this run of the agent."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}

    def start(self, seconds: float) -> tuple[str, str]:
        """Start one and return its id and its command."""
        task_id, command = f"b{os.urandom(4).hex()}", f"sleep {seconds:g}"
        process = subprocess.Popen(
            command.split(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        self._running[task_id] = (command, process)
        return task_id, command

    def ended(self) -> list[tuple[str, str]]:
        """Return id and notification of those that have ended since the last call."""
        over = [
            (task, command, code)
            for task, (command, process) in self._running.items()
            if (code := process.poll()) is not None
        ]
        for task, _, _ in over:
            del self._running[task]
        return [
            (task, notification(task, command, "completed" if code == 0 else "failed")) for task, command, code in over
        ]

    def listed(self) -> list[dict[str, str]]:
        """Return what runs, as the Stop hook tells it."""
        return [
            {"id": task, "type": "shell", "status": "running", "description": command, "command": command}
            for task, (command, _) in self._running.items()
        ]

    def end_all(self) -> None:
        """Kill what runs."""
        for _, process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()


def notification(task: str, command: str, status: str) -> str:
    """Return the prompt that the agent gives to itself when a task is over."""
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<status>{status}</status>\n"
        f"<summary>Background command {command!r}: {status}</summary>\n</task-notification>"
    )
