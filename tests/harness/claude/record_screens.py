"""Records what real Claude Code shows, for the tests of what reads screens.

`python -m tests.harness.claude.record_screens` does it.
HARNESS_VERSION says which version. Each screen becomes `tests/unit/harness/screens/<version>/<what>.txt`; the
first words of its name tell what a reader must find: `input` an input line, `mode` one that takes no message now,
`dialog` a dialog, `view` none of these.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from core.base.clock import SystemClock
from core.harness.claude.adapter import ClaudeHarness
from tests.fakes.model import ModelServer, serving
from tests.harness.claude.conftest import WORDS
from tests.harness.claude.product import CLAUDE, KEY, claude_environ
from tests.integration.harness.stage import Stage
from tests.support.tmux import wait_until

SCREENS = Path(__file__).parents[2] / "unit" / "harness" / "screens"
LOOKS_LIKE = "[[say Shall I?\n\n❯ 1. Yes\n  2. No\n\nEnter to confirm · Esc to cancel]]"
QUESTIONS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [{"label": "red", "description": "like a robin"}, {"label": "blue", "description": "as a jay"}],
        }
    ]
}
LONG = "[[tool bash for i in 1 2 3; do\n  touch made-$i\ndone; printf '%s' " + "a" * 150 + "]]"
JOINED = "\U0001f469\U0001f3fd\u200d\U0001f52c" * 150  #: of which Claude Code and tmux 3.3 count other columns
UNCHECKED = "[[tool bash curl http://127.0.0.1:1/; rm -rf kept]]"
_BLINKS = re.compile("[●✻✶✳✢✽·]")


class Recorder:
    """One Claude Code on its stage."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self._folder = folder
        self._asked = 0

    def still(self) -> str:
        """Return the screen once nothing but a blinking mark has changed for a while."""
        seen: list[str] = []

        def rests() -> bool:
            seen.append(self.stage.tmux("capture-pane", "-p", "-t", "scribe"))
            return len(seen) > 8 and len({_BLINKS.sub(" ", screen) for screen in seen[-8:]}) == 1

        wait_until(rests, "the screen rests", 30, every=0.1)
        return seen[-1]

    def keep(self, name: str) -> None:
        """Keep what is shown, without what is of this machine."""
        rows = [row.rstrip() for row in self.still().rstrip("\n").split("\n")]
        text = "\n".join(rows).rstrip() + "\n"
        for path, said in ((self.stage.context.cwd, "/home/ann/project"), (self.stage.context.folder, "/home/ann/.s")):
            text = text.replace(str(path), said)
        text = re.sub(r"/tmp/[\w/.-]+", "/tmp/somewhere", text)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.txt").write_text(text)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        for key in keys:
            self.stage.tmux("send-keys", "-t", "scribe", key)
            self.still()

    def ask(self, text: str, shown: str) -> None:
        """Say something and wait until the screen shows that."""
        self._asked += 1
        if text.startswith("/"):
            self.stage.paste(text)
        else:
            self.stage.say(f"ask{self._asked}", text)
        wait_until(lambda: shown in self.stage.screen(), f"{shown!r} is shown:\n{self.stage.screen()}", 60)


def starting(recorder: Recorder) -> None:
    """Keep the first dialog."""
    wait_until(lambda: re.search(r"(?m)^\s*❯ ", recorder.stage.screen()), "a dialog", 60)


def talking(recorder: Recorder) -> None:
    """Keep what a session shows that runs."""
    recorder.stage.start_ready()
    wait_until(lambda: re.search(r"(?m)^❯", recorder.stage.screen()), "the input line", 30)
    recorder.keep("input-idle")
    recorder.ask("[[tool bash touch made]]", "Do you want to proceed?")
    recorder.keep("dialog-bash")
    recorder.stage.tmux("resize-window", "-t", "scribe", "-x", "60", "-y", "24")
    recorder.keep("dialog-bash-narrow")
    recorder.press("Escape")
    recorder.keep("input-narrow")
    recorder.stage.tmux("resize-window", "-t", "scribe", "-x", "120", "-y", "50")
    recorder.ask(LONG, "Do you want to proceed?")
    recorder.keep("dialog-bash-long")
    recorder.press("Escape")
    made = recorder.stage.context.cwd / "new.txt"
    recorder.ask(f'[[call Write {{"file_path": "{made}", "content": "one\\ntwo\\n"}}]]', "Do you want to create")
    recorder.keep("dialog-write")
    recorder.press("Escape")
    recorder.ask('[[call WebFetch {"url": "http://example.org/", "prompt": "x"}]]', "Do you want to allow")
    recorder.keep("dialog-fetch")
    recorder.press("Escape")
    recorder.ask(f"[[call AskUserQuestion {json.dumps(QUESTIONS)}]]", "Chat about this")
    recorder.keep("dialog-question")
    recorder.press("Down", "Down", "Down")
    recorder.keep("dialog-question-below-the-frame")
    recorder.press("Escape")
    recorder.ask(LOOKS_LIKE, "● Shall I?")
    recorder.keep("input-looks-like-a-dialog")
    recorder.press("C-o")
    recorder.keep("view-transcript")
    recorder.press("C-o", "C-r")
    recorder.keep("view-search" if "❯" not in recorder.still().split("─")[-1] else "dialog-search")
    recorder.press("Escape")
    for name, words in (
        ("model", "Select model"),
        ("cost", "Total duration"),
        ("login", "Select login method"),
    ):
        recorder.ask(f"/{name}", words)
        recorder.keep(f"dialog-{name}")
        recorder.press("Escape")
    recorder.stage.tmux("send-keys", "-t", "scribe", "Escape", "Escape")
    wait_until(lambda: "Restore the" in recorder.stage.screen(), "the list of earlier points", 30)
    recorder.keep("dialog-rewind")
    recorder.press("Escape", "!")
    recorder.keep("mode-shell")
    recorder.press("BSpace", "/")
    recorder.keep("input-commands")
    recorder.press("BSpace", "?")
    recorder.keep("input-shortcuts")
    recorder.press("BSpace")
    recorder.stage.keys(b"\x1b[200~half\ntyped\x1b[201~")
    recorder.keep("input-half-typed")


def joining(recorder: Recorder) -> None:
    """Keep the input line below rows that are too wide for the terminal."""
    recorder.stage.start_ready()
    for number in range(2):
        recorder.ask(f"text {number}: {JOINED}", "ECHO")
        recorder.stage.expect_turns(number + 1)
    recorder.keep("input-joined-emoji")


def planning(recorder: Recorder) -> None:
    """Keep the question whether a plan is to be carried out."""
    recorder.stage.start_ready()
    plan = "1. do it\\n" + "─" * 60 + "\\n❯ x\\n" + "─" * 60
    recorder.ask(f'[[call ExitPlanMode {{"plan": "{plan}"}}]]', "1. Yes")
    recorder.keep("dialog-plan")


def unchecked(recorder: Recorder) -> None:
    """Keep what auto mode asks where its check cannot be reached."""
    recorder.stage.start_ready()
    recorder.stage.say("auto1", UNCHECKED)
    wait_until(lambda: re.search("Esc to cancel|● DONE", recorder.stage.screen()), "a dialog, or an answer", 60)
    if "billed as before" in recorder.still():
        recorder.keep("dialog-auto-billing")
    if "stay in auto mode" not in recorder.still():
        return
    recorder.keep("dialog-auto-unchecked")
    recorder.stage.tmux("resize-window", "-t", "scribe", "-x", "70", "-y", "40")
    recorder.keep("dialog-auto-unchecked-narrow")
    recorder.stage.tmux("resize-window", "-t", "scribe", "-x", "120", "-y", "50")
    recorder.press("Enter")
    recorder.keep("dialog-auto-approval")


@contextmanager
def recorder(
    model: ModelServer, args: tuple[str, ...] = ("--permission-mode", "default"), *, trusted: bool = True, **env: str
) -> Iterator[Recorder]:
    """Give a Claude Code that knows nobody, in a folder of its own."""
    root = Path(tempfile.mkdtemp(prefix="ls-"))
    environ = {**claude_environ(root / "home", model), **env}
    (root / "home").mkdir()
    conf = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []}}
    (root / "home" / ".claude.json").write_text(json.dumps(conf))
    harness = ClaudeHarness(SystemClock(), environ, trust_enabled=trusted, accept_bypass="never")
    stage = Stage(harness, WORDS, root, environ, args)
    (root / "work" / "kept").mkdir()
    stage.context = replace(stage.context, cwd=root / "work")
    try:
        yield Recorder(stage, SCREENS / CLAUDE.version)
    finally:
        stage.close()
        shutil.rmtree(root, ignore_errors=True)


def servers(stage: Stage, *names: str) -> None:
    """Let the project have MCP servers."""
    offered: Mapping[str, object] = {name: {"command": "/bin/false"} for name in names}
    (stage.context.cwd / ".mcp.json").write_text(json.dumps({"mcpServers": offered}))


def main() -> None:
    """Record all of them."""
    with serving() as model:
        with recorder(model, trusted=False) as one:
            one.stage.start()
            starting(one)
            one.keep("dialog-trust")
        for name, offered in (("dialog-server", ["my server"]), ("dialog-servers", ["one", "two", "the other"])):
            with recorder(model) as one:
                servers(one.stage, *offered)
                one.stage.start()
                starting(one)
                one.keep(name)
        with recorder(model, ("--dangerously-skip-permissions",), IS_SANDBOX="1") as one:
            one.stage.start()
            starting(one)
            one.keep("dialog-bypass")
        with recorder(model) as one:
            talking(one)
        with recorder(model) as one:
            joining(one)
        with recorder(model, ("--permission-mode", "plan")) as one:
            planning(one)
        with recorder(model, ("--permission-mode", "auto")) as one:
            unchecked(one)


if __name__ == "__main__":
    main()
