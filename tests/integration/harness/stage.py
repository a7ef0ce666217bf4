"""One session of one harness in a private tmux, driven through its adapter alone, as the core will drive it."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from core.base.names import new_instance, new_uid
from core.harness.base import discard, read_reports
from core.model.delivering import PIECE_SETTLES, PREPARING_SETTLES
from core.model.framing import PASTE_END, PASTE_START, SUBMIT, pieces_of, shows_text
from core.model.harness import (
    Ended,
    Harness,
    HarnessEvent,
    Ready,
    SessionContext,
    TextQueued,
    TextTaken,
    Transcript,
    TurnEnded,
)
from core.model.pane import View
from core.session.launching import launcher_text
from tests.support.tmux import PATIENCE, alive, wait_until

E = TypeVar("E", bound=HarnessEvent)


@dataclass(frozen=True)
class Words:
    """What makes this harness do something."""

    busy: str  #: work for about four seconds, in a tool
    permission: str  #: ask for permission
    background: str  #: start a background task of about two seconds
    echo: Callable[[str], bool]  #: whether an answer shows that the marker `#echo1` was understood
    asked: str = "Bash: "  #: how what `permission` asks for is summed up, or the beginning of that
    anew: str = "/clear"  #: what a person types to begin a new conversation


class Stage:
    """Starts, steers and stops one session; collects what the adapter makes of it."""

    def __init__(
        self,
        harness: Harness,
        words: Words,
        root: Path,
        environ: Mapping[str, str],
        args: tuple[str, ...] = (),
        *,
        patience: float = PATIENCE,
    ) -> None:
        """`patience`: seconds for what the harness reports."""
        self.harness, self.words = harness, words
        cwd = root / "work"
        cwd.mkdir(parents=True, exist_ok=True)
        uid, instance = new_uid(), new_instance()
        self.context = SessionContext(
            name="scribe",
            uid=uid,
            instance=instance,
            cwd=cwd,
            folder=root / "sessions" / uid,
            spool=root / "spool" / instance,
            notify=root / "poke",
            args=args,
            session_id=harness.new_session_id(),
        )
        os.mkfifo(self.context.notify)
        self.events: list[HarnessEvent] = []
        self._patience = patience
        self.pane_pid = 0
        self._environ = dict(environ)
        self._transcript: Transcript | None = None
        self._socket = f"loop-test-{secrets.token_hex(4)}"
        self._sockets = Path(tempfile.mkdtemp(prefix="ls-"))  # short, since the path of a Unix socket is limited

    # ---- life

    def start(self, prompt: str | None = None) -> None:
        """Spawn; from the second time on resume where the adapter says so."""
        self.context = replace(self.context, instance=new_instance())
        resume = self.pane_pid != 0 and self.harness.resumable(self.context)
        self.harness.prepare(self.context)
        launch = self.harness.launch(self.context, resume=resume, prompt=prompt)
        script = self.context.folder / "launch"
        script.write_text(launcher_text(launch, ()))
        size, given = ("-x", "120", "-y", "50"), [f"-e{key}={value}" for key, value in launch.env.items()]
        self.tmux("new-session", "-d", "-s", "scribe", *size, *given, "-c", str(self.context.cwd), f"sh {script}")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.pane_pid = int(self.tmux("list-panes", "-t", "scribe", "-F", "#{pane_pid}"))
        self._transcript = self.harness.transcript(self.context, from_start=True)

    def start_ready(self, prompt: str | None = None) -> None:
        """Spawn and wait until the harness says that it reads."""
        self.start(prompt)
        self.expect(Ready)

    def terminate(self, number: int = signal.SIGTERM) -> None:
        """Signal the harness once its conversation is on the disk, wait for its end, and drop the pane."""
        time.sleep(self.harness.traits.flush)
        os.kill(self.pane_pid, number)
        wait_until(lambda: not alive(self.pane_pid), "the harness ends", self._patience)
        self.collect()
        self.tmux("kill-server")
        wait_until(lambda: not self.tmux_lives(), "tmux ends")

    def close(self) -> None:
        """End whatever is left."""
        subprocess.run(
            self._tmux_line("kill-server"), env=self._tmux_env(), capture_output=True, timeout=10, check=False
        )
        shutil.rmtree(self._sockets, ignore_errors=True)

    # ---- hands

    def keys(self, data: bytes) -> None:
        """Write bytes into the pane as a terminal would."""
        self.tmux("load-buffer", "-b", "keys", "-", data=data)
        self.tmux("paste-buffer", "-r", "-d", "-b", "keys", "-t", "scribe")

    def type_line(self, text: str) -> None:
        """Type text and, at a person's pace, Enter: popups and dialogs have come up by then."""
        if text:
            self.keys(text.encode())
        time.sleep(0.5)
        self.keys(b"\r")

    def clear(self) -> None:
        """Empty the composer. What comes within the settle time of a paste may be taken for a part of it."""
        time.sleep(PREPARING_SETTLES * self.harness.traits.settle)
        self.keys(self.harness.traits.clear or b"")
        time.sleep(PREPARING_SETTLES * self.harness.traits.settle)

    def paste(self, text: str) -> None:
        """Paste a message in the pieces in which delivery does, and submit it after the settle time, once it shows."""
        traits = self.harness.traits
        wait_until(lambda: not self.asking(), f"nothing keeps it from reading; {self.screen()}")
        if self.harness.name == "claude":  # on a busy machine it says that it reads before its line is there
            wait_until(self._shows_line, "its input line shows", self._patience)
        pieces = pieces_of(f"{text} ", traits) or ()
        self.keys(b"".join(PASTE_START + piece.encode() + PASTE_END for piece in pieces))
        time.sleep(traits.settle + PIECE_SETTLES.total_seconds() * len(pieces))  # as delivery does: nothing tells of it
        if traits.echo is not None:
            echo, whole = traits.echo, "".join(pieces)
            wait_until(lambda: shows_text(self.screen(), whole, echo), f"its line shows {text!r}; {self.screen()}")
        self.keys(SUBMIT)

    def say(self, marker: str, text: str) -> None:
        """Paste a message and wait for the evidence; a CR that was lost is sent once more, as delivery does."""
        self.paste(f"[ann #{marker}] {text}")
        end = time.monotonic() + 1.5
        while not self.taken(marker) and not self.asking() and time.monotonic() < end:
            time.sleep(0.02)
        if not self.taken(marker) and not self.asking():
            self.keys(b"\r")
        wait_until(lambda: self.taken(marker), f"evidence of #{marker}; {self.screen()}", self._patience)

    # ---- eyes

    def collect(self) -> list[HarnessEvent]:
        """Take in the spool and the conversation, and return all events so far."""
        read = read_reports(self.context.spool, self.context.instance)
        assert read.bad == ()
        for report in read.reports:
            self.take_in(self.harness.interpret(report))
            discard(self.context.spool, report)
        if self._transcript is not None:
            self.take_in(self._transcript.new_events())
        return self.events

    def take_in(self, events: tuple[HarnessEvent, ...]) -> None:
        """Remember events, and follow the conversation's id."""
        self.events += events
        for event in events:
            if isinstance(event, Ready) and event.session_id not in (None, self.context.session_id):
                self.context = replace(self.context, session_id=event.session_id)
                self._transcript = self.harness.transcript(self.context, from_start=True)

    def expect(self, kind: type[E], which: Callable[[E], bool] = lambda event: True, seconds: float = 0.0) -> E:
        """Wait for an event. Raises AssertionError that shows the screen and what came instead."""
        found: list[E] = []

        def look() -> bool:
            found.extend(event for event in self.collect() if isinstance(event, kind) and which(event))
            return bool(found)

        try:
            wait_until(look, f"{kind.__name__}", seconds or self._patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.events}\n{self.screen()}") from None
        return found[0]

    def expect_turns(self, count: int) -> None:
        """Wait until that many turns have ended."""
        wait_until(lambda: len(self.of(TurnEnded)) >= count, f"{count} turns are over", self._patience)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of a kind so far."""
        return [event for event in self.collect() if isinstance(event, kind)]

    def taken(self, marker: str) -> bool:
        """Return whether a turn has taken the marked text, or the harness's queue holds it."""
        prompts = [event.prompt for event in self.of(TextTaken)] + [event.prompt for event in self.of(TextQueued)]
        return any(f"#{marker}]" in prompt for prompt in prompts)

    def asking(self) -> bool:
        """Return whether the reporter's marker says that a dialog is open."""
        return (self.context.folder / "asking").exists()

    def ended(self) -> bool:
        """Return whether the harness told of its end."""
        return bool(self.of(Ended))

    def _shows_line(self) -> bool:
        return self.harness.input_line(View(tuple(self.screen().splitlines()))) is not None

    def screen(self) -> str:
        """Return what the pane shows."""
        return self.tmux("capture-pane", "-p", "-t", "scribe") if self.tmux_lives() else "(no pane)"

    # ---- tmux

    def tmux(self, *words: str, data: bytes | None = None) -> str:
        """Run one tmux command and return what it prints."""
        done = subprocess.run(
            self._tmux_line(*words), input=data, env=self._tmux_env(), capture_output=True, timeout=20, check=True
        )
        return done.stdout.decode()

    def tmux_lives(self) -> bool:
        """Return whether the server runs."""
        asked = subprocess.run(
            self._tmux_line("has-session"), env=self._tmux_env(), capture_output=True, timeout=10, check=False
        )
        return asked.returncode == 0

    def _tmux_line(self, *words: str) -> list[str]:
        return ["tmux", "-u", "-L", self._socket, "-f", "/dev/null", *words]

    def _tmux_env(self) -> dict[str, str]:
        return {**self._environ, "TMUX_TMPDIR": str(self._sockets)}
