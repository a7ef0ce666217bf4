"""The thirty cases that every harness runs, with the real program, through the whole product.

A test module subclasses `Cases` and provides the `kit`. Where a harness cannot do a thing by its nature, its kit says
why; the case then shows what the product says and does instead, and the matrix tells the reason.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.product import TURN, Ability, HarnessProduct, Kit, command_of, harness_product, times_in
from tests.harness.recording import LACKS
from tests.support.asking import press, wait_buttons, wait_text
from tests.support.product import NAME
from tests.support.tmux import alive, wait_until

Lacks = Callable[[Ability], bool]
BRIEF = "Look after it."
SAID = {"Allow": "Allowed", "Deny": "Denied"}
AWKWARD = {
    "bang": "!touch made-by-shell",
    "slash": "/help and then tell me",
    "at": "look at @mcp",
    "backslash": "it ends in a backslash \\",
}
_FILE = re.compile(r"(?:Read all of it in|Read the file) (/\S+)")


def prose(size: int) -> str:
    """Return that many bytes of numbered lines, with letters of two and three bytes in them."""
    lines = [f"line {number:05} grüße 日本 {'x' * 60}" for number in range(size // 60)]
    text = "\n".join(lines).encode()[:size].decode(errors="ignore")
    return text + "." * (size - len(text.encode()))


def begin(product: HarnessProduct) -> str:
    """Bring the service up, wait until the boot turn is answered and over, and return the session's thread."""
    product.serve().wait_swept(TURN)
    thread = product.root(seconds=TURN)
    product.wait_reply(thread, BRIEF, TURN)
    product.wait_activity("idle")
    return thread


def start(product: HarnessProduct, *names: str) -> None:
    """Start sessions without a service, and wait until their boot turns are over."""
    for name in names or (NAME,):
        started = product.cli("standing", "start", name, "--json", seconds=TURN)
        assert started.code == 0, started.out
        product.wait_activity("idle", name)


def say(product: HarnessProduct, text: str, name: str = NAME) -> dict[str, Any]:
    """Say it by the command line, and return the answer once it is known what became of it."""
    said: dict[str, Any] = product.cli("standing", "say", name, "--text", text, "--json", seconds=TURN).json
    return said


def ask(product: HarnessProduct, text: str, name: str = NAME) -> None:
    """Say it, and wait until it is confirmed and answered."""
    say(product, text, name)
    product.wait_confirmed(text, name)
    product.wait_activity("idle", name)


def heard_once(product: HarnessProduct, text: str) -> str:
    """Return the text in which the model was given a message, which must be one."""
    [marker] = product.markers(text)
    [whole] = product.said(f"#{marker}]")
    return whole


def kill(*pids: int) -> None:
    """End processes as a crash would."""
    for pid in pids:
        with suppress(ProcessLookupError):  # it was ending with another
            os.kill(pid, signal.SIGKILL)


def file_of(text: str) -> str:
    """Return the path that a text names in the place of a long one, "" where it holds all itself."""
    found = _FILE.search(text)
    return found[1] if found else ""


class Cases:
    """Thirty things that people do with a session. Whoever subclasses this gives the fixture `kit`: the harness."""

    @pytest.fixture
    def talking(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product whose one session has a thread in a workspace."""
        with (
            WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
            harness_product(workspace, model, kit) as product,
        ):
            yield product

    @pytest.fixture
    def alone(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product without a channel."""
        with harness_product(None, model, kit) as product:
            yield product

    @pytest.fixture
    def lacks(self, kit: Kit, record_property: Callable[[str, object], None]) -> Lacks:
        """Return whether the harness lacks an ability, and note why."""

        def lacking(ability: Ability) -> bool:
            if ability in kit.lacks:
                record_property(LACKS, kit.lacks[ability])
            return ability in kit.lacks

        return lacking

    # -------------------------------------------------------------------------------------------------- its start

    @pytest.mark.capability("boot hook")
    def test_the_first_start_opens_no_dialog_and_leaves_the_persons_files_alone(self, talking: HarnessProduct) -> None:
        """Nobody ever started it here: it reads by itself. What its person had written is there, and nothing of ours.

        Codex notes in its own settings what it has shown once.
        """
        before = {path: path.read_text() for path in talking.home.rglob("*") if path.is_file()}

        thread = begin(talking)
        row = talking.row()
        talking.cli("standing", "stop", NAME)

        assert row["capabilities"]["boot hook"] != "missing"
        assert talking.events("standing.asked") == []
        assert not [text for text in talking.bot_replies(thread) if "dialog" in text]
        after = {path: path.read_text() for path in before}
        assert {path: [line for line in before[path].splitlines() if line not in after[path]] for path in before} == {
            path: [] for path in before
        }
        assert [path for path, text in after.items() if "the-loop" in text or str(talking.paths.root) in text] == []

    @pytest.mark.capability("boot hook")
    def test_a_brief_of_100_kb_is_taken_whole(self, talking: HarnessProduct) -> None:
        """As its first message, or as a file that it may read without a question."""
        brief = prose(100_000)
        (talking.folder / "brief").write_text(brief)
        session = {"name": NAME, "promptFile": str(talking.folder / "brief"), "slack": {"enabled": True}}
        talking.configure(standingSessions={"enabled": True, "sessions": [session]})
        talking.serve().wait_swept(TURN)
        talking.root(seconds=TURN)
        talking.wait_activity("idle", seconds=2 * TURN)

        [first] = talking.said("[the-loop boot #")
        path = file_of(first)
        ask(talking, f"please {talking.kit.read.format(path=path)}" if path else "are you up")

        assert brief in (Path(path).read_text() if path else first)
        assert talking.events("standing.asked") == []

    @pytest.mark.capability("queue evidence")
    def test_a_message_while_it_boots_goes_in_afterwards(self, alone: HarnessProduct) -> None:
        """It waits until the program reads, and is taken once."""
        alone.serve()
        wait_until(alone.panes, "its pane is there", TURN)

        told = say(alone, "an early word")
        alone.wait_state("an early word", "confirmed")
        alone.wait_activity("idle")

        assert told["state"] in ("queued", "pending", "submitted", "accepted", "confirmed")
        assert heard_once(alone, "an early word").endswith("an early word")
        assert len(alone.said(BRIEF)) == 1

    # ------------------------------------------------------------------------------------------------- messages

    @pytest.mark.capability("pasting")
    def test_a_reply_of_10_kb_arrives_whole(self, talking: HarnessProduct) -> None:
        """Typed into the thread; the model gets it once, letter by letter."""
        thread, text = begin(talking), prose(10_000)

        talking.workspace.say("alice", "agents", text, thread)
        talking.wait_state(text, "confirmed")
        talking.wait_activity("idle")

        assert text in heard_once(talking, text)

    @pytest.mark.capability("pasting")
    def test_a_message_of_100_kb_arrives_whole(self, alone: HarnessProduct) -> None:
        """In the terminal, or as a file that it may read without a question."""
        start(alone)
        file, text = alone.folder / "long.txt", prose(100_000)
        file.write_text(text)

        alone.cli("standing", "say", NAME, "--file", str(file), "--json", seconds=TURN)
        alone.wait_confirmed(text)
        alone.wait_activity("idle")
        heard = heard_once(alone, text)
        path = file_of(heard)
        if path:
            ask(alone, f"please {alone.kit.read.format(path=path)}")

        assert text in (Path(path).read_text() if path else heard)
        assert alone.events("standing.asked") == []

    @pytest.mark.capability("pasting")
    @pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
    def test_what_its_input_line_gives_a_meaning_is_only_text(self, alone: HarnessProduct, text: str) -> None:
        """No command runs and no file is looked for; the message after it stands alone."""
        start(alone)

        ask(alone, text)
        ask(alone, "and on its own")

        assert heard_once(alone, text).endswith(text)
        assert heard_once(alone, "and on its own").endswith("and on its own")
        assert text not in heard_once(alone, "and on its own")
        assert not (alone.folder / "work" / "made-by-shell").exists()

    @pytest.mark.capability("pasting")
    def test_the_end_of_a_paste_within_a_text_presses_nothing(self, alone: HarnessProduct) -> None:
        """What stands behind it is text as well, in its order, in one message."""
        start(alone)
        text = "a heron\x1b[201~\rand a swallow\x1b[200~ and an owl"

        say(alone, text)
        wait_until(lambda: alone.said("a heron"), "it arrives", TURN)
        alone.wait_activity("idle")

        [heard] = alone.said("a heron")
        assert heard.index("a heron") < heard.index("and a swallow") < heard.index("and an owl")
        assert "\x1b" not in heard
        assert len(alone.said("and a swallow")) == 1

    @pytest.mark.capability("queue evidence")
    @pytest.mark.parametrize("busy", ["[[sleep 12]]", ""], ids=["mid-turn", "mid-tool"])
    def test_replies_in_a_turn_are_taken_once_and_in_order(self, talking: HarnessProduct, busy: str) -> None:
        """None is called confirmed before a turn took it."""
        thread = begin(talking)
        work = f"work {busy or talking.kit.work.format(seconds=12)}"
        talking.workspace.say("alice", "agents", work, thread)
        talking.wait_request("work")
        texts = ("the first swallow", "the second swallow")

        sent = [talking.workspace.say("alice", "agents", text, thread) for text in texts]
        wait_until(lambda: all(talking.state_of(text) for text in texts), "they are known")
        early = [talking.state_of(text) for text in texts if not talking.said(text)]
        for text in texts:
            talking.wait_state(text, "confirmed")
        for ts in sent:
            talking.workspace.wait_for_reaction("agents", ts, "white_check_mark", TURN)

        assert "confirmed" not in early
        whole = "\n".join(talking.model.requests()[-1].said)
        assert [whole.count(f"#{marker}]") for marker in talking.markers(*texts)] == [1, 1]
        assert whole.index(texts[0]) < whole.index(texts[1])

    @pytest.mark.capability("turn edges")
    def test_an_answer_is_read_back_into_the_thread(self, talking: HarnessProduct) -> None:
        """Every line of it, once, in its order; the row is idle afterwards and the reply ticked off."""
        thread = begin(talking)
        answer = "\n\n".join(f"Heron {number} stands in the reeds." for number in range(1, 30))
        talking.model.texts["herons"] = answer

        ts = talking.workspace.say("alice", "agents", "count them [[text herons]]", thread)
        talking.wait_reply(thread, "Heron 29 stands", TURN)
        talking.workspace.wait_for_reaction("agents", ts, "white_check_mark", TURN)
        talking.wait_activity("idle")

        found = re.findall(r"Heron (\d+) stands in the reeds\.", "\n".join(talking.bot_replies(thread)))
        assert [int(number) for number in found] == list(range(1, 30))

    # ---------------------------------------------------------------------------------------------- permissions

    @pytest.mark.capability("permission hook")
    def test_a_permission_dialog_gets_no_enter(self, talking: HarnessProduct) -> None:
        """A reply waits while it is open, nothing is approved by it, and it goes in once a person has answered."""
        thread, made = begin(talking), talking.folder / "work" / "made-by-test"
        talking.workspace.say("alice", "agents", f"work {talking.kit.asks}", thread)
        wait_until(lambda: talking.activity() in ("permission", "dialog"), "it asks", TURN, every=1.0)

        talking.workspace.say("alice", "agents", "not an answer", thread)
        talking.wait_state("not an answer", "queued")
        before = made.exists()
        for key in talking.kit.reject:
            talking.keys(key)
        talking.wait_state("not an answer", "confirmed")
        talking.wait_activity("idle")

        assert before is False
        assert not made.exists()
        assert heard_once(talking, "not an answer").endswith("not an answer")

    @pytest.mark.capability("permission hook")
    @pytest.mark.parametrize("label", ["Allow", "Deny"])
    def test_a_permission_is_answered_in_the_thread(self, talking: HarnessProduct, lacks: Lacks, label: str) -> None:
        """The tool runs, or does not; where no hook can answer, the dialog itself is shown, with its own choices."""
        thread, made = begin(talking), talking.folder / "work" / "made-by-test"
        talking.workspace.say("alice", "agents", f"work {talking.kit.asks}", thread)

        by_screen = lacks(Ability.ANSWER)
        asked = wait_buttons(talking, thread, "shows a dialog in its terminal" if by_screen else "asks for perm", TURN)
        before = made.exists()
        press(talking, "alice", asked, talking.kit.choices[label] if by_screen else label)
        told = "chosen by alice" if by_screen else f"{SAID[label]}* by alice"
        wait_text(talking, thread, asked["ts"], told, TURN)
        talking.wait_activity("idle")
        if by_screen:
            assert talking.row()["capabilities"]["permission hook"] == "missing"

        assert before is False
        assert made.exists() is (label == "Allow")

    # --------------------------------------------------------------------------------------------------- its jobs

    @pytest.mark.capability("background tasks")
    def test_a_job_is_pending_until_it_is_over(self, alone: HarnessProduct, lacks: Lacks) -> None:
        """The row tells of it after the turn; where its harness does not, it claims none, and a stop ends it all."""
        start(alone)
        job = f"sleep {40 if Ability.TASKS in alone.kit.lacks else 15}"
        ask_job = f"work {alone.kit.job.format(seconds=job.split()[1])}"
        say(alone, ask_job)
        alone.wait_confirmed(ask_job)
        wait_until(lambda: alone.left(job), "the job runs", TURN)

        if lacks(Ability.TASKS):
            alone.wait_activity("idle")
            row = alone.row()
            alone.cli("standing", "stop", NAME, seconds=TURN)
            assert (row["pendingTasks"], row["capabilities"]["background tasks"]) == ([], "missing")
            assert alone.left(job) == []
            return
        wait_until(lambda: alone.row()["pendingTasks"], "the row tells of it", TURN, every=1.0)
        wait_until(lambda: not alone.left(job), "it is over", TURN)
        wait_until(lambda: not alone.row()["pendingTasks"], "the row tells so", TURN, every=1.0)
        alone.wait_activity("idle")

    @pytest.mark.capability("background tasks")
    def test_a_job_that_ends_in_a_pause_wakes_nobody(self, talking: HarnessProduct) -> None:
        """No request is made before the resume, and what is said in the pause goes in after it."""
        thread, job = begin(talking), "sleep 12"
        work = f"work {talking.kit.job.format(seconds=12)}"
        talking.workspace.say("alice", "agents", work, thread)
        talking.wait_state(work, "confirmed")
        talking.wait_reply(thread, "DONE:", TURN)
        running = bool(talking.left(job))

        paused = talking.cli("standing", "pause", NAME, "--json", seconds=TURN)
        before = len(talking.model.requests())
        talking.workspace.say("alice", "agents", "said in the pause", thread)
        talking.wait_state("said in the pause", "pending", "queued")
        wait_until(lambda: not talking.left(job), "the job is over", TURN)
        with pytest.raises(AssertionError):
            wait_until(lambda: len(talking.model.requests()) > before, "a turn begins", 4)
        talking.cli("standing", "resume", NAME, seconds=TURN)
        talking.wait_state("said in the pause", "confirmed")

        assert running
        assert paused.code == 0

    # ------------------------------------------------------------------------------------ ends, and what follows

    @pytest.mark.capability("resume")
    def test_a_stop_in_a_turn_ends_the_whole_tree(self, talking: HarnessProduct) -> None:
        """Nothing of it lives, also what its tool started, and nothing is started again."""
        thread, kit = begin(talking), talking.kit
        work = f"work {kit.work.format(seconds=60)}"
        talking.workspace.say("alice", "agents", work, thread)
        wait_until(lambda: talking.left(kit.worker.format(seconds=60)), "its tool works", TURN)
        pids = talking.agents()

        stopped = talking.cli("standing", "stop", NAME, "--json", seconds=TURN)
        left = [command_of(pid) for pid in pids if alive(pid)]

        assert stopped.row["outcome"] == "stopped"
        assert left == []
        assert talking.row()["hold"]["kind"] == "stopped"

    @pytest.mark.capability("resume")
    @pytest.mark.parametrize("how", ["TERM", "KILL"])
    def test_a_conversation_goes_on_after(self, alone: HarnessProduct, how: str) -> None:
        """The same one, with what was said before."""
        start(alone)
        ask(alone, "remember the heron")
        conversation = alone.record()["harnessSessionId"]
        [pane] = alone.panes().values()

        if how == "TERM":
            alone.cli("standing", "stop", NAME, seconds=TURN)
        else:
            kill(*alone.agents())
            wait_until(lambda: not alive(pane), "it is gone")
        again = alone.cli("standing", "start", NAME, "--json", seconds=TURN)
        ask(alone, "what was it?")

        assert again.row["outcome"] == "resumed"
        assert alone.record()["harnessSessionId"] == conversation
        assert times_in(alone.wait_request("what was it?"), "remember the heron") >= 1

    @pytest.mark.capability("resume")
    def test_one_that_never_had_a_turn_begins_anew(self, alone: HarnessProduct) -> None:
        """Killed before it could read: the next start works, and gets its brief."""
        process, _ = alone.begin("--config", str(alone.config), "standing", "start", NAME)
        wait_until(alone.panes, "its pane is there", TURN)
        kill(*alone.agents())
        process.wait(TURN)

        start(alone)
        ask(alone, "are you up")

        assert alone.said(BRIEF)

    @pytest.mark.capability("resume")
    def test_two_sessions_in_one_folder_are_told_apart(self, alone: HarnessProduct) -> None:
        """Started at once; each has a conversation of its own, also after a stop."""
        alone.declare("heron", "swallow")
        started = alone.cli("start", "--json", seconds=2 * TURN)
        names = ("heron", "swallow")
        for name in names:
            alone.wait_activity("idle", name)
            ask(alone, f"you are the {name}", name)
        before = {name: alone.record(name)["harnessSessionId"] for name in names}

        alone.cli("restart", "--json", seconds=2 * TURN)
        for name in names:
            ask(alone, f"who is the {name}?", name)

        assert started.code == 0
        assert len(set(before.values())) == 2
        assert {name: alone.record(name)["harnessSessionId"] for name in names} == before
        for name, other in zip(names, reversed(names), strict=True):
            request = alone.wait_request(f"who is the {name}?")
            assert times_in(request, f"you are the {name}") >= 1
            assert times_in(request, f"you are the {other}") == 0

    @pytest.mark.capability("transcript form")
    def test_a_conversation_that_a_person_begins_anew_is_followed(self, alone: HarnessProduct) -> None:
        """The id changes; what is said next is confirmed by the new one, and a restart goes on with that."""
        start(alone)
        ask(alone, "said before")
        before = alone.record()["harnessSessionId"]
        type_line(alone, alone.kit.anew)

        ask(alone, "said after")
        wait_until(lambda: alone.record()["harnessSessionId"] != before, "the id is followed", TURN)
        alone.cli("standing", "restart", NAME, seconds=TURN)
        ask(alone, "said in the end")

        last = alone.wait_request("said in the end")
        assert times_in(last, "said after") >= 1
        assert times_in(last, "said before") == 0

    # --------------------------------------------------------------------------------------- people at its terminal

    @pytest.mark.capability("turn edges")
    def test_a_turn_that_is_cut_off_at_the_terminal_is_over(self, alone: HarnessProduct) -> None:
        """No row is busy for ever, and the next message goes in alone."""
        alone.serve().wait_swept(TURN)
        alone.wait_activity("idle")
        say(alone, "work [[sleep 60]]")
        alone.wait_request("work")
        alone.wait_activity("busy")

        for key in alone.kit.cancel:
            alone.keys(key)
        alone.wait_activity("idle")
        ask(alone, "on its own")

        assert "work" not in heard_once(alone, "on its own")

    @pytest.mark.capability("turn edges")
    def test_who_leaves_it_at_the_terminal_crashes_nothing(self, talking: HarnessProduct, lacks: Lacks) -> None:
        """It is told as left, or as ended, and not brought back; the next start goes on with the conversation."""
        begin(talking)
        type_line(talking, talking.kit.leave)

        [told] = talking.wait_event("standing.exited", seconds=TURN)
        reason = "it ended" if lacks(Ability.LEAVING) else "a person left it"
        assert told["reason"] == reason
        assert talking.row()["running"] is False
        again = talking.cli("standing", "start", NAME, "--json", seconds=TURN)
        assert again.row["outcome"] == "resumed"

    @pytest.mark.capability("turn edges")
    def test_a_crash_is_seen_and_the_conversation_goes_on(self, talking: HarnessProduct) -> None:
        """Within seconds, with the signal; the service brings it back."""
        session = {"name": NAME, "prompt": BRIEF, "restart": "on-failure", "slack": {"enabled": True}}
        talking.configure(standingSessions={"enabled": True, "sessions": [session]})
        begin(talking)
        [pane] = talking.panes().values()

        kill(pane)
        [told] = talking.wait_event("standing.exited", seconds=10)
        wait_until(lambda: pane not in talking.panes().values() and talking.panes(), "it is brought back", TURN)
        talking.wait_activity("idle")
        ask(talking, "are you well")

        assert "signal 9" in told["detail"]
        assert talking.events("standing.resumed")

    # ------------------------------------------------------------------------------------------ tools and hazards

    @pytest.mark.capability("tools")
    def test_it_calls_a_tool_of_ours_without_a_question(self, talking: HarnessProduct) -> None:
        """What it posts stands in the thread, and the tool's answer reaches the model."""
        thread = begin(talking)

        talking.workspace.say("alice", "agents", 'tell them [[call post {"text": "half way there"}]]', thread)
        talking.wait_reply(thread, "half way there", TURN)
        talking.wait_reply(thread, "postId", TURN)

        assert talking.events("standing.asked") == []
        assert talking.events("standing.posted")[-1]["actor"] == f"agent:{NAME}"

    @pytest.mark.capability("turn edges")
    def test_a_session_whose_folder_is_removed_still_answers(self, talking: HarnessProduct, lacks: Lacks) -> None:
        """Or calls nothing delivered meanwhile; with the folder, or after a restart in it, all is well."""
        tree = talking.folder / "trees" / "feature"
        tree.mkdir(parents=True)
        session = {"name": NAME, "prompt": BRIEF, "cwd": str(tree), "slack": {"enabled": True}}
        talking.configure(standingSessions={"enabled": True, "sessions": [session]})
        begin(talking)

        tree.rmdir()
        say(talking, "without a folder")
        refuses = lacks(Ability.FOLDER)
        talking.wait_state("without a folder", "unknown" if refuses else "confirmed")
        tree.mkdir()
        if refuses:
            talking.cli("standing", "restart", NAME, seconds=TURN)
        ask(talking, "with a folder")

        assert heard_once(talking, "with a folder").endswith("with a folder")

    @pytest.mark.capability("turn edges")
    def test_hooks_that_its_person_switched_off_are_done_without(self, talking: HarnessProduct, lacks: Lacks) -> None:
        """It starts, takes and answers messages; the row says that the hooks are silent, or that they report."""
        if not lacks(Ability.HOOKS_OFF):
            assert talking.kit.hooks_off is not None
            talking.kit.hooks_off(talking.home)
        talking.serve().wait_swept(TURN)
        thread = talking.root(seconds=TURN)
        talking.wait_activity("idle")

        for text in ("one thing", "another thing"):
            talking.workspace.say("alice", "agents", text, thread)
            talking.wait_reply(thread, text, TURN)
            talking.wait_state(text, "confirmed")

        hooks, told = talking.row()["hooks"], talking.events("standing.hooks_silent")
        assert hooks in ("silent", "reporting")
        assert bool(told) is (hooks == "silent")


def type_line(product: HarnessProduct, line: str) -> None:
    """Type a line at the terminal as a person does: the Enter once the text is shown and read."""
    product.keys("-l", line)
    wait_until(lambda: line in product.screen(), f"{line!r} is shown", TURN)
    with pytest.raises(AssertionError):
        wait_until(lambda: line not in product.screen(), "it is gone", 1.0)  # else the Enter is read with the text
    product.keys("Enter")
