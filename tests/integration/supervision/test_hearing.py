"""Hooks that are silent: another source tells what they do not, once, and everybody is told that it is so."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.values import replace
from core.delivery.hearing import AFTER, BOOT, GRACE, Hearing, Retries, mark_silent, why_silent
from core.delivery.saying import say
from core.harness.opencode.reports import PLUGIN
from core.lifecycle.look import get_standing
from core.model.activity import Activity, ActivityState, Silence
from core.model.message import MessageState
from core.model.posts import NewPost, OutboundKind
from core.model.reasons import Because, Reason, text_of
from core.model.session import Binding, Hold, HoldKind, SessionRecord, Status
from core.session.folder import REPORTER
from core.session.system import System
from tests.support.simulated import Played, Simulation, settings_of, simulated
from tests.support.world import definition, events
from tests.unit.store.samples import a_record

ANSWER = "the swallows are back"
NOTE_BEGINS = "The hooks of `scribe` are silent"
FRAME = "─" * 40


def written(system: System, record: SessionRecord, **changes: Any) -> SessionRecord:
    """Write the record with these changes, and return it."""
    changed = replace(record, **changes)
    system.records.write(changed)
    return changed


class Claude:
    """A session of Claude Code that is played: its pane, its hooks where they report, and its own files."""

    def __init__(self, simulation: Simulation, home: Path) -> None:
        self.simulation, self.system = simulation, simulation.system
        self.folder = home / ".claude"
        record = a_record(instance_id="i-scribe", harness_session_id="c-1", definition=definition("scribe", slack=True))
        started = self.system.clock.now() - timedelta(seconds=1)
        self.record = written(self.system, record, started_at=started, status=Status.RUNNING)
        folder = self.system.paths.session(record.uid)
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        (folder / REPORTER).touch(mode=0o700)
        started_as = Activity(record.uid, "i-scribe", ActivityState.STARTING, self.system.clock.now())
        self.system.activities.put(started_as)
        self.pane: Played = simulation.pane(self.record)
        self.conversation = "c-1"
        self.hearing, self.retries = Hearing(self.system), Retries(self.system)

    # ---- what the program does

    def boots(self) -> None:
        """Say by its hook that it reads."""
        self.pane.read()
        self.system.ingest(self.record.uid)

    def says(self, status: str, conversation: str = "c-1") -> None:
        """Write its status file."""
        path = self.folder / "sessions" / f"{self.pane.pid}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"status": status, "sessionId": conversation}))
        moment = self.system.clock.now().timestamp()
        os.utime(path, (moment, moment))

    def writes(self, *entries: dict[str, Any]) -> None:
        """Append lines to the conversation, a tenth of a second apart."""
        cwd = os.path.realpath(self.system.settings.routing.spawn_workdir)
        name = "".join(each if each.isascii() and each.isalnum() else "-" for each in cwd)
        path = self.folder / "projects" / name / f"{self.conversation}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            self.simulation.clock.pause(0.1)
            with path.open("a") as stream:
                stream.write(json.dumps({**entry, "timestamp": self.system.clock.now().isoformat()}) + "\n")

    def begins(self, text: str = "count them", turn: str = "t-1") -> None:
        """Write that a turn took this."""
        self.writes({"type": "user", "message": {"content": text}, "promptId": turn, "origin": {"kind": "human"}})

    def answers(self, text: str = ANSWER) -> None:
        """Write the answer, and that the turn is over."""
        self.writes(
            {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}},
            {"type": "system", "subtype": "turn_duration"},
        )

    def fails(self, error: str, text: str) -> None:
        """Write an error in the place of an answer."""
        message = {"id": "e", "content": [{"type": "text", "text": text}]}
        self.writes({"type": "assistant", "message": message, "error": error, "isApiErrorMessage": True})

    # ---- what is seen

    def after(self, seconds: float | timedelta = 0.0) -> Activity:
        """Let so much time pass, look, and return what is known then."""
        span = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        self.simulation.clock.pause(span.total_seconds())
        survey = self.simulation.tmux.survey()
        self.record = self.system.records.read("scribe") or self.record
        self.hearing.follow(self.record, survey.of_instance("i-scribe"))
        self.retries.look([self.record], survey)
        return self.activity

    @property
    def activity(self) -> Activity:
        """What is known of it."""
        found = self.system.activities.get(self.record.uid)
        assert found is not None
        return found

    def posts(self, kind: OutboundKind) -> list[NewPost]:
        """Return what its thread is to be told, of that kind, in order."""
        with closing(sqlite3.connect(self.system.paths.database)) as database:
            found = database.execute("SELECT id FROM outbox WHERE kind = ? ORDER BY seq", (kind.value,)).fetchall()
        rows = [self.system.outbox.get(post_id) for (post_id,) in found]
        return [row.post for row in rows if row is not None]

    def told(self, event: str) -> list[str | None]:
        """Return the reasons of these events."""
        return [each.get("reason") for each in events(self.system, event)]


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Claude]:
    """Give a session of Claude Code whose start is recorded, at noon."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    root = tmp_path / "state"
    root.mkdir()
    settings = settings_of(root, slack=True)
    settings = settings._replace(routing=settings.routing._replace(default_harness="claude"))
    simulation = simulated(root, settings=settings)
    yield Claude(simulation, home)
    simulation.system.close()


@pytest.fixture
def reading(claude: Claude) -> Claude:
    """Give one whose hook has said that it reads."""
    claude.boots()
    claude.says("idle")
    return claude


@pytest.fixture
def silent(reading: Claude) -> Claude:
    """Give one whose hooks have said nothing of its first turn."""
    reading.begins()
    reading.answers("first")
    reading.after(GRACE)
    assert reading.activity.silence is Silence.TURNS
    return reading


# ---------------------------------------------------------------- turns


def test_a_turn_that_no_hook_told_of_is_answered_from_the_record(reading: Claude) -> None:
    """Once, after the moment in which its hook may still report, and the thread is told why it comes late."""
    reading.begins()
    reading.answers()
    early = reading.after(GRACE - timedelta(seconds=1)).silence
    after = reading.after(GRACE)
    reading.after(10)

    assert (early, after.silence, after.state) == (None, Silence.TURNS, ActivityState.IDLE)
    assert [post.text for post in reading.posts(OutboundKind.ANSWER)] == [ANSWER]
    [note] = [post for post in reading.posts(OutboundKind.NOTE) if post.text.startswith(NOTE_BEGINS)]
    assert "its hooks did not report the end of a turn" in note.text
    assert len(reading.told("standing.hooks_silent")) == 1


def test_a_turn_that_hooks_told_of_is_told_by_them_alone(reading: Claude) -> None:
    """What the record shows besides is nothing new."""
    reading.pane.turn = "t-1"
    reading.pane.report({"hook_event_name": "UserPromptSubmit", "prompt": "count them"})
    reading.begins()
    reading.answers()
    reading.pane.report({"hook_event_name": "Stop", "last_assistant_message": ANSWER})
    after = reading.after(10)

    assert (after.silence, after.state) == (None, ActivityState.IDLE)
    assert [post.text for post in reading.posts(OutboundKind.ANSWER)] == [ANSWER]
    assert reading.posts(OutboundKind.NOTE) == []


def test_a_hooks_late_word_posts_no_second_answer_and_ends_the_silence(reading: Claude) -> None:
    """Whoever tells of it, one turn's answer has one key; the note says that hooks report again."""
    reading.begins()
    reading.answers(f"{ANSWER}\n\n- and here")
    silent_why = text_of(reading.after(10).silent_why)
    reading.pane.turn = "t-1"
    reading.pane.report({"hook_event_name": "Stop", "last_assistant_message": f"{ANSWER}\n- and here"})
    reading.system.ingest(reading.record.uid)

    assert reading.activity.silence is None
    assert len(reading.posts(OutboundKind.ANSWER)) == 1
    note, edit = (post for post in reading.posts(OutboundKind.NOTE) if post.text.startswith("The hooks of `scribe`"))
    assert (note.buttons, edit.buttons) == ((), ())  # a restart would not mend that
    assert edit.edits == note.id
    assert edit.text.startswith("The hooks of `scribe` report again, since ")
    assert edit.text.endswith(f"Earlier this note said: {silent_why}.")
    assert reading.told("standing.hooks_back") == [None]


def test_a_failed_turn_that_no_hook_told_of_is_told_as_failed(reading: Claude) -> None:
    """With the reason, the remedy, and the event."""
    reading.begins()
    reading.fails("authentication_failed", "Please run /login")
    after = reading.after(GRACE)

    assert after.failed == "not-logged-in"
    assert reading.posts(OutboundKind.ANSWER) == []
    assert any("run `claude` and `/login`" in post.text for post in reading.posts(OutboundKind.NOTE))
    assert len(reading.told("standing.turn_failed")) == 1


KEY = f"sk-ant-api03-{'Ab3' * 12}"


@pytest.mark.parametrize("record_first", [True, False], ids=["record-first", "hook-first"])
def test_a_message_whose_turn_failed_at_once_is_told_with_the_programs_words(
    reading: Claude, record_first: bool
) -> None:
    """Once, whether the hook or the record comes first; the words are cut short, and carry no secret."""
    bind(reading)
    reading.pane.reports = False
    message = say(reading.system, "scribe", "count them", actor="cli:ann", wait=0).message_id
    reading.simulation.deliver()
    prompt = reading.pane.prompts[-1]
    reading.pane.reports, reading.pane.turn = True, "t-1"
    reading.pane.report({"hook_event_name": "UserPromptSubmit", "prompt": prompt})
    if record_first:
        reading.begins(prompt)
    reading.pane.fail("authentication_failed", f"API Error: 401 invalid key {KEY}{' tried' * 99}")
    reading.system.ingest(reading.record.uid)
    if not record_first:
        reading.begins(prompt)
    reading.simulation.deliverer.follow([reading.record.uid])
    reading.simulation.deliverer.advance(reading.record.uid)

    [note] = reading.posts(OutboundKind.NOTE)
    row = get_standing(reading.system, "scribe")
    assert note.text.startswith("ann's message to `scribe`, sent by a command, was taken by a turn that failed: ")
    assert (
        "its program is not logged in, or its key is not valid (API Error: 401 invalid key [redacted] tried"
        in note.text
    )
    assert "run `claude` and `/login`" in note.text
    assert len(note.text) < 700
    assert reading.system.marks.failed(message)
    assert row.detail.count("API Error") == 1
    told = [*reading.told("standing.turn_failed"), row.detail, *map(text_of, reading.activity.remarks)]
    assert not [one for one in told if KEY in str(one)]


def test_a_failed_turn_that_nobody_sent_is_told_before_its_record_is_read(reading: Claude) -> None:
    """A boot prompt or a tick has no sender to be told with the record."""
    bind(reading)
    reading.pane.reports = False
    message = say(reading.system, "scribe", "look around", actor="cli:ann", wait=0).message_id
    with reading.system.database.transaction(durable=False):
        reading.system.database.write("UPDATE inbox SET kind = 'notice' WHERE id = ?", (message,))
    reading.simulation.deliver()
    reading.pane.reports, reading.pane.turn = True, "t-1"
    reading.pane.report({"hook_event_name": "UserPromptSubmit", "prompt": reading.pane.prompts[-1]})
    reading.pane.fail("authentication_failed", "Please run /login")
    reading.system.ingest(reading.record.uid)
    reading.begins(reading.pane.prompts[-1])
    reading.simulation.deliverer.follow([reading.record.uid])
    reading.simulation.deliverer.advance(reading.record.uid)

    [note] = reading.posts(OutboundKind.NOTE)
    assert note.text.startswith("A turn of `scribe` failed: its program is not logged in")


def test_a_message_that_fails_again_is_told_anew(reading: Claude) -> None:
    """It is no further message: a note that counted it would offer to send the same words once more for each press."""
    bind(reading)
    reading.pane.reports = False
    first = say(reading.system, "scribe", "count them", actor="cli:ann", wait=0).message_id
    reading.simulation.deliver()
    reading.begins(reading.pane.prompts[-1])
    reading.fails("server_error", "API Error: 529")
    reading.after(GRACE)
    sent = reading.system.inbox.get(first)
    assert sent is not None
    again = replace(sent.message, id="m-again", key=f"again:{first}", marker="k3f9q2", again_of=first)
    reading.system.inbox.add([again])
    reading.simulation.deliver()
    reading.begins(reading.pane.prompts[-1], "t-2")
    reading.fails("server_error", "API Error: 529")
    reading.after(GRACE)

    notes = [post for post in reading.posts(OutboundKind.NOTE) if "was taken by a turn that failed" in post.text]
    assert [(post.about, post.edits) for post in notes] == [(first, ""), ("m-again", "")]


def test_a_message_is_done_when_its_turn_is_over_though_no_hook_says_so(reading: Claude) -> None:
    """The row is confirmed by the record, and its mark is settled at the end of its turn."""
    system, reading.pane.reports = reading.system, False
    message = say(system, "scribe", "count them", actor="cli:ann", wait=0).message_id
    reading.simulation.deliver()
    reading.begins(reading.pane.prompts[-1])
    reading.simulation.deliver()
    row = system.inbox.get(message)
    reading.answers()
    reading.after(GRACE)
    began = reading.record.started_at or reading.system.clock.now()
    left = system.marks.over(reading.record.uid, "i-scribe", began, failed=True)

    assert row is not None
    assert (row.state, left) == (MessageState.CONFIRMED, ())


def test_a_turn_that_was_cut_off_is_no_silence(reading: Claude) -> None:
    """No hook tells of Escape, in any version."""
    reading.begins()
    reading.writes({"type": "user", "message": {"content": "[Request interrupted by user]"}})

    assert reading.after(10).silence is None


INTERRUPTED = {"type": "user", "message": {"content": "[Request interrupted by user]"}}
CUT_OFF = (
    "ann's message to `scribe`, sent by a command, was taken by a turn that was cut off by an interruption before it "
    "had answered. To do: send it again"
)


def bind(reading: Claude) -> None:
    """Give the session a thread."""
    now = reading.system.clock.now()
    reading.system.bindings.bind(Binding("slack", "T1", "C1", "1.0", reading.record.uid, "scribe", now))


def queued(reading: Claude, text: str = "count them") -> str:
    """Let the program's own queue hold a message, and return its text as the program has it."""
    system = reading.system
    message = say(system, "scribe", text, actor="cli:ann", wait=0).message_id
    reading.simulation.deliver()
    prompt = reading.pane.prompts[-1]
    reading.writes({"type": "queue-operation", "operation": "enqueue", "content": prompt})
    reading.simulation.deliver()
    row = system.inbox.get(message)
    assert row is not None
    assert row.queued_at is not None, row
    return prompt


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "found-idle"])
def test_a_queued_message_is_told_whose_turn_was_cut_off_before_it_answered(reading: Claude, recorded: bool) -> None:
    """Nobody was at its turn: the key that ended the one before was pressed once more. It can be sent again."""
    bind(reading)
    reading.pane.reports = False
    prompt = queued(reading)
    reading.begins(prompt, "t-2")
    if recorded:
        reading.writes(INTERRUPTED)
    else:
        cut_off = replace(reading.activity, state=ActivityState.IDLE, because=Because(Reason.CUT_OFF))
        reading.simulation.deliver()
        reading.system.activities.put(replace(cut_off, since=reading.system.clock.now()))
    reading.after(GRACE)
    reading.after(GRACE)

    [row] = reading.system.inbox.with_states(reading.record.uid, {MessageState.CONFIRMED})
    notes = [post.text for post in reading.posts(OutboundKind.NOTE)]
    assert notes == [CUT_OFF]
    assert reading.system.marks.failed(row.message.id)


@pytest.mark.parametrize("how", ["answered", "paused", "not-queued"])
def test_a_turn_that_was_cut_off_is_told_by_nobody_twice(reading: Claude, how: str) -> None:
    """Whoever pressed the key knows, and so does whoever paused the session."""
    bind(reading)
    reading.pane.reports = False
    if how == "not-queued":
        say(reading.system, "scribe", "count them", actor="cli:ann", wait=0)
        reading.simulation.deliver()
        reading.begins(reading.pane.prompts[-1], "t-2")
    else:
        reading.begins(queued(reading), "t-2")
    if how == "answered":
        reading.writes({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "so"}]}})
    if how == "paused":
        hold = Hold(HoldKind.PAUSED, "cli:ann", "", reading.system.clock.now())
        written(reading.system, reading.system.records.read("scribe") or reading.record, hold=hold)
    reading.writes(INTERRUPTED)
    reading.after(GRACE)
    reading.after(GRACE)

    assert reading.posts(OutboundKind.NOTE) == []


def test_what_a_turn_did_while_no_service_ran_is_told_by_the_next_one(silent: Claude) -> None:
    """From the record, once; what was told before is not told again."""
    silent.begins("more", "t-2")
    silent.answers()
    silent.hearing = Hearing(silent.system)
    silent.after(1)
    silent.hearing = Hearing(silent.system)
    silent.after(1)

    assert [post.text for post in silent.posts(OutboundKind.ANSWER)] == ["first", ANSWER]


def test_a_turn_that_runs_over_a_restart_of_the_service_is_followed_on(silent: Claude) -> None:
    """Its beginning was told by the one before."""
    silent.begins("more", "t-2")
    begun = silent.after(1)
    silent.hearing = Hearing(silent.system)
    silent.after(1)
    silent.answers()
    after = silent.after(1)

    assert (begun.state, begun.turn, after.state) == (ActivityState.BUSY, "t-2", ActivityState.IDLE)
    assert [post.text for post in silent.posts(OutboundKind.ANSWER)] == ["first", ANSWER]


def test_another_conversation_is_followed_by_the_second_sources_word(silent: Claude) -> None:
    """`/clear` begins one, which its boot hook would have told."""
    silent.says("idle", "c-2")
    silent.conversation = "c-2"
    silent.after(1)
    silent.begins("anew", "t-9")
    silent.answers()
    silent.after(1)
    silent.after(1)

    assert silent.record.conversation == "c-2"
    assert [post.text for post in silent.posts(OutboundKind.ANSWER)] == ["first", ANSWER]


def test_one_hook_alone_ends_no_silence_about_turns(silent: Claude) -> None:
    """That a prompt was reported does not show that the end of a turn will be."""
    silent.pane.report({"hook_event_name": "UserPromptSubmit", "prompt": "more"})
    silent.system.ingest(silent.record.uid)

    assert silent.activity.silence is Silence.TURNS


# ---------------------------------------------------------------- why


def test_a_folder_that_is_gone_is_named_as_the_reason(reading: Claude) -> None:
    """With what brings the hooks back."""
    cwd = Path(reading.system.settings.routing.spawn_workdir)
    gone = cwd / "gone"
    reading.record = written(reading.system, reading.record, definition=definition("scribe", slack=True, cwd=str(gone)))
    name = "".join(each if each.isascii() and each.isalnum() else "-" for each in os.path.realpath(gone))
    reading.begins()
    reading.answers()
    (reading.folder / "projects").iterdir().__next__().rename(reading.folder / "projects" / name)
    why = text_of(reading.after(GRACE).silent_why)

    assert why == f"the session's folder {gone} is gone, so no hook can start there: make the folder again"


def test_settings_that_switch_hooks_off_are_named_as_the_reason(reading: Claude) -> None:
    """As before a start."""
    (reading.folder / "settings.json").write_text('{"disableAllHooks": true}')
    reading.begins()
    reading.answers()

    assert "disableAllHooks is set in" in text_of(reading.after(GRACE).silent_why)


def test_a_reporter_that_is_gone_is_named_as_the_reason(reading: Claude) -> None:
    """A restart writes it again."""
    (reading.system.paths.session(reading.record.uid) / REPORTER).unlink()
    reading.begins()
    reading.answers()

    assert "`the-loop standing restart scribe` writes it again" in text_of(reading.after(GRACE).silent_why)
    [note] = [post for post in reading.posts(OutboundKind.NOTE) if post.text.startswith("The hooks of `scribe`")]
    assert [button.label for button in note.buttons] == ["Restart"]


@pytest.mark.parametrize("silence", Silence)
def test_a_plugin_that_does_not_report_is_named_as_the_reason(claude: Claude, silence: Silence) -> None:
    """OpenCode has no hooks: a plugin reports, and its file may be gone."""
    record = replace(claude.record, definition=definition("scribe", slack=True, harness="opencode"))
    plugin = claude.system.paths.session(record.uid) / PLUGIN

    gone = why_silent(claude.system, record, silence).text
    plugin.touch(mode=0o600)
    there = why_silent(claude.system, record, silence).text

    assert gone == f"its plugin {plugin} does not exist: `the-loop standing restart scribe` writes it again"
    assert there == (
        "its plugin does not report: look at the session's terminal, `the-loop standing attach scribe --write`"
    )


def test_of_a_harness_with_a_plugin_no_hooks_are_spoken_of(reading: Claude) -> None:
    """Neither in the thread nor in the row, nor in what a folder that is gone would prevent."""
    gone = definition("scribe", slack=True, harness="opencode", cwd=str(reading.folder / "gone"))
    record = written(reading.system, reading.record, definition=gone)

    mark_silent(reading.system, record, Silence.START)

    [note] = (post.text for post in reading.posts(OutboundKind.NOTE))
    row = get_standing(reading.system, "scribe")
    assert note.startswith("The plugin of `scribe` is silent: its plugin ")
    assert "its plugin is silent: its plugin " in row.detail
    assert "hook" not in note + row.detail


def test_what_the_program_says_of_its_hooks_is_told(reading: Claude) -> None:
    """Where nothing else explains it."""
    reading.begins()
    trouble = {"type": "hook_non_blocking_error", "hookEvent": "Stop", "stderr": "cannot fork"}
    reading.writes({"type": "attachment", "attachment": trouble})
    reading.answers()

    assert text_of(reading.after(GRACE).silent_why).startswith("its hooks cannot run (cannot fork)")


# ---------------------------------------------------------------- the start


def test_a_start_whose_boot_hook_does_not_come_is_guessed_from_its_second_source(claude: Claude) -> None:
    """After a while in which the hook may come; then it is no `starting` session any more."""
    claude.says("idle")
    early = claude.after(BOOT - timedelta(seconds=1))
    after = claude.after(1)

    assert (early.state, early.silence) == (ActivityState.STARTING, None)
    assert (after.state, after.silence) == (ActivityState.IDLE, Silence.START)
    row = get_standing(claude.system, "scribe")
    assert (row.hooks, row.capabilities and row.capabilities["boot hook"]) == ("silent", "missing")
    assert "its hooks are silent: the program runs, but its hooks have not reported it" in row.detail


def test_a_start_is_guessed_from_a_turn_in_its_record(claude: Claude) -> None:
    """The boot's turn is there, and neither its hook nor a second source."""
    claude.begins("your brief")
    claude.after(BOOT)
    claude.answers()
    after = claude.after(1)

    assert (after.state, after.silence) == (ActivityState.IDLE, Silence.START)
    assert [post.text for post in claude.posts(OutboundKind.ANSWER)] == [ANSWER]


def test_a_start_of_which_nothing_tells_is_said_so_within_its_time(claude: Claude) -> None:
    """Nothing is typed into it, and whatever tells later counts."""
    late = claude.system.settings.routing.tmux.start_timeout_seconds
    before = claude.after(late - 1)
    after = claude.after(2)
    said = say(claude.system, "scribe", "hello", actor="cli:ann", wait=0)
    claude.simulation.deliver()
    row = claude.system.inbox.get(said.message_id)
    claude.says("idle")
    found = claude.after(BOOT)

    assert (before.state, after.state, after.silence) == (
        ActivityState.STARTING,
        ActivityState.UNKNOWN,
        Silence.UNTOLD,
    )
    assert "s no other source has shown it" in text_of(after.silent_why)
    assert row is not None
    assert (row.state, claude.simulation.tmux.writes) == (MessageState.QUEUED, 0)
    assert (found.state, found.silence) == (ActivityState.IDLE, Silence.START)


def test_a_start_is_guessed_from_its_input_line_where_nothing_else_tells(claude: Claude) -> None:
    """At its deadline: what it does is not known, and messages go in."""
    claude.pane.shown = f"{FRAME}\n\u276f \n{FRAME}\n"
    after = claude.after(claude.system.settings.routing.tmux.start_timeout_seconds)

    assert (after.state, after.silence) == (ActivityState.UNKNOWN, Silence.START)


def test_a_boot_hook_that_comes_late_ends_the_silence(claude: Claude) -> None:
    """The start is not guessed any more."""
    claude.says("idle")
    claude.after(BOOT)
    claude.boots()

    assert (claude.activity.silence, get_standing(claude.system, "scribe").hooks) == (None, "reporting")


def test_a_dialog_at_the_start_is_no_program_that_reads(claude: Claude) -> None:
    """Somebody has to answer it first."""
    claude.says("waiting")

    assert claude.after(BOOT).state is ActivityState.STARTING


# ---------------------------------------------------------------- while they are silent


def test_a_message_waits_for_the_end_of_the_turn_while_hooks_are_silent(silent: Claude) -> None:
    """No marker would tell of a dialog that opens meanwhile."""
    silent.pane.reports = False
    silent.begins("long", "t-2")
    silent.says("busy")
    silent.after(1)
    said = say(silent.system, "scribe", "and this", actor="cli:ann", wait=0)
    silent.simulation.deliver()
    waiting = silent.system.inbox.get(said.message_id)
    written = silent.simulation.tmux.writes
    silent.answers()
    silent.says("idle")
    silent.after(1)
    silent.simulation.deliver()
    gone = silent.system.inbox.get(said.message_id)

    assert waiting is not None
    assert (waiting.state, written) == (MessageState.QUEUED, 0)
    assert gone is not None
    assert gone.state is MessageState.SUBMITTED


def test_the_second_source_tells_of_work_that_no_record_shows_yet(silent: Claude) -> None:
    """What somebody typed at the terminal has no line yet. Of a dialog the screen tells, with what it says."""
    silent.says("busy")
    busy = silent.after(1)
    silent.says("waiting")
    asks = silent.after(1)

    assert [each.state for each in (busy, asks)] == [ActivityState.BUSY] * 2


def test_a_turn_that_its_record_leaves_open_was_cut_off(silent: Claude) -> None:
    """The second source says that it is over, and the record does not say how."""
    silent.begins("long", "t-2")
    silent.says("busy")
    silent.after(1)
    silent.says("idle")
    at_once = silent.after(1)
    after = silent.after(2)

    assert at_once.state is ActivityState.BUSY
    assert (after.state, after.reason) == (ActivityState.IDLE, Reason.CUT_OFF)


def test_how_a_turn_ended_that_no_record_has_is_not_guessed(silent: Claude) -> None:
    """It may have answered in a form that is not understood."""
    silent.says("busy")
    silent.after(1)
    silent.says("idle")
    after = silent.after(3)

    assert (after.state, after.reason) == (ActivityState.IDLE, Reason.END_UNKNOWN)


# ---------------------------------------------------------------- requests that are tried again


def retry_screen(attempt: int) -> str:
    """Return what Claude Code shows at that attempt."""
    return f"\u276f work\n\n✻ 529 Overloaded · retrying in 9s · attempt {attempt}/10\n\n{FRAME}\n\u276f \n{FRAME}\n"


def test_a_request_that_is_tried_again_is_told_once_and_followed(reading: Claude) -> None:
    """After a while, with the attempt in the row; the note says in the end that it goes on."""
    reading.pane.begin("work")
    reading.system.ingest(reading.record.uid)
    reading.pane.shown = retry_screen(2)
    early = text_of(reading.after(AFTER - timedelta(seconds=1)).retrying)
    first = text_of(reading.after(2).retrying)
    reading.pane.shown = retry_screen(3)
    second = text_of(reading.after(5).retrying)
    row = get_standing(reading.system, "scribe").detail
    reading.pane.shown = f"● Well\n\n{FRAME}\n\u276f \n{FRAME}\n"
    once = text_of(reading.after(5).retrying)
    after = text_of(reading.after(5).retrying)

    assert early == ""
    assert first.endswith("attempt 2 of 10")
    assert (
        second
        == once
        == "the model's server answers 529 (Overloaded); the program tries again by itself, attempt 3 of 10"
    )
    assert second in row
    assert after == ""
    note, edit = reading.posts(OutboundKind.NOTE)
    assert note.text == f"A turn of `scribe` waits: {first}; nothing is lost."
    assert (edit.edits, edit.text.startswith("A turn of `scribe` goes on, since ")) == (note.id, True)
    assert edit.text.endswith(f"Before that: {second}.")
    assert len(reading.told("standing.retrying")) == 1


def test_a_request_that_is_given_up_says_so_in_its_note(reading: Claude) -> None:
    """Beside what the failed turn's own note says."""
    reading.pane.begin("work")
    reading.system.ingest(reading.record.uid)
    reading.pane.shown = retry_screen(9)
    reading.after(AFTER)
    reading.pane.fail("server_error", "API Error: 529")
    reading.system.ingest(reading.record.uid)
    after = text_of(reading.after(5).retrying)

    assert after == ""
    assert [post.text for post in reading.posts(OutboundKind.NOTE) if post.edits and "has given up" in post.text]


def test_a_login_that_is_refused_is_told_with_its_remedy(reading: Claude) -> None:
    """Waiting helps nobody there. What the screen shows of the key is not passed on."""
    reading.pane.begin("work")
    reading.system.ingest(reading.record.uid)
    reading.pane.shown = retry_screen(5).replace("529 Overloaded", f"401 invalid key {KEY}")
    reading.after(AFTER)

    [note] = reading.posts(OutboundKind.NOTE)
    [told] = reading.told("standing.retrying")
    assert "run `claude` and `/login`" in note.text
    assert "(invalid key [redacted])" in str(told)
    assert "(invalid key [redacted])" in note.text
