"""What a new pane is given, how it is waited for, and what its thread is told."""

import threading
from dataclasses import replace

import pytest

from core.base.errors import NotRunning
from core.config.settings import HarnessDeclaration
from core.delivery.saying import say
from core.lifecycle.look import get_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.message import InboxRow, Kind, MessageState
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.reasons import said
from core.model.session import Binding, Live, Outcome, Thread
from core.session.system import System
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, AGENT, World, declaring, definition, outcomes, recorded


def boot_rows(system: System, name: str) -> list[InboxRow]:
    """Return the session's boot prompts, oldest first."""
    rows = system.inbox.with_states(recorded(system, name).uid, list(MessageState))
    return [row for row in reversed(rows) if row.message.kind is Kind.BOOT]


def posts(system: System) -> list[NewPost]:
    """Return the first open post of each session."""
    return [row.post for row in system.outbox.due("slack", system.clock.now())]


# ---------------------------------------------------------------- the boot prompt


def test_boot_prompt_is_a_row_that_is_on_its_way(system: System) -> None:
    """It travels as the argument; where the harness proves nothing, that is the last word."""
    start_standing(system, "scribe", ACTOR)

    [row] = boot_rows(system, "scribe")
    assert (row.state, row.final, row.instance) == (
        MessageState.SUBMITTED,
        True,
        recorded(system, "scribe").instance_id,
    )


def test_resume_sends_no_boot_prompt(system: System, world: World) -> None:
    """The conversation knows it already."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, None, ACTOR)
    start_standing(system, "scribe", ACTOR)

    assert len(boot_rows(system, "scribe")) == 1
    text = (world.store / str(recorded(system, "scribe").harness_session_id)).read_text()
    assert text.count("[the-loop boot #") == 1


def test_conversation_without_a_turn_gets_its_boot_prompt_again(world: World) -> None:
    """The bundled agent was ended before its first turn: nothing can be resumed, so it begins anew."""
    system = bundled(world)
    start_standing(system, "scribe", ACTOR)
    first = recorded(system, "scribe")
    stop_standing(system, "scribe", ACTOR)
    for path in (system.paths.session(first.uid) / "agent").rglob("*.jsonl"):
        path.unlink()

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert recorded(system, "scribe").harness_session_id != first.harness_session_id
    assert len(boot_rows(system, "scribe")) == 2


def test_boot_prompt_is_settled_by_the_harness_own_word(world: World) -> None:
    """A turn that took it, told by a hook, confirms the row."""
    system = bundled(world)

    start_standing(system, "scribe", ACTOR)

    wait_for_the_boot_turn(system)


def test_bundled_agent_is_ready_by_its_own_word_and_resumes(world: World) -> None:
    """It says that it reads; after a stop the same conversation goes on."""
    system = bundled(world)
    start_standing(system, "scribe", ACTOR)
    first = recorded(system, "scribe")
    wait_for_the_boot_turn(system)
    stop_standing(system, "scribe", ACTOR)

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert recorded(system, "scribe").harness_session_id == first.harness_session_id
    assert answer.sessions[0].activity is not ActivityState.STARTING


def wait_for_the_boot_turn(system: System) -> None:
    """Wait until a hook told that a turn took the boot prompt."""

    def confirmed() -> bool:
        system.ingest(recorded(system, "scribe").uid)
        return [row.state for row in boot_rows(system, "scribe")] == [MessageState.CONFIRMED]

    wait_until(confirmed, "the boot prompt is confirmed")


def bundled(world: World) -> System:
    """Return ports whose `scribe` is the bundled agent."""
    return declaring(world.system(), definition("scribe", harness="bundled"))


def test_long_boot_prompt_is_read_from_a_file(system: System, world: World) -> None:
    """Above 96 KiB the argument only says where it is."""
    long = declaring(system, definition("scribe", prompt="x" * 100_000))

    start_standing(long, "scribe", ACTOR)

    record = recorded(system, "scribe")
    told = (world.store / str(record.harness_session_id)).read_text()
    file = system.paths.session(record.uid) / "boot-prompt.md"
    assert str(file) in told
    assert len(told) < 1000
    assert "x" * 100_000 in file.read_text()


def test_harness_without_a_place_for_it_gets_it_pasted(world: World) -> None:
    """The row waits, and delivery takes it as it takes any other."""
    plain = HarnessDeclaration("plain", ("/bin/sh", str(AGENT), str(world.store), "start", "c1"), ready="READY")
    settings = world.settings()
    system = world.system(settings._replace(harnesses={**settings.harnesses, "plain": plain}))

    start_standing(declaring(system, definition("scribe", harness="plain")), "scribe", ACTOR)

    [row] = boot_rows(system, "scribe")
    assert row.state is MessageState.PENDING


# ---------------------------------------------------------------- waiting


def test_harness_that_is_not_ready_in_time_counts_as_started(world: World) -> None:
    """It lives; the row says that it has not said that it reads."""
    (world.store / "deaf").touch()
    system = replace(world, start_seconds=0.5).system()

    answer = start_standing(system, "scribe", ACTOR)

    [row] = answer.sessions
    assert (row.outcome, row.live) == (Outcome.STARTED, Live.LIVE)
    assert "has not said within 0.5 s that it is ready for input" in row.detail


def test_session_that_is_stopped_while_it_comes_up_stays_stopped(world: World) -> None:
    """No lock is held while it is waited for; the stop wins, and the start says so."""
    (world.store / "deaf").touch()
    answers = []
    starter = threading.Thread(target=lambda: answers.append(start_standing(world.system(), "scribe", ACTOR)))
    system = world.system()

    starter.start()
    wait_until(lambda: system.runner.survey().of_target("loop-standing-scribe"), "a pane is there")
    stopped = stop_standing(system, "scribe", ACTOR)
    starter.join(timeout=30)

    assert outcomes(stopped) == {"scribe": Outcome.STOPPED}
    assert outcomes(answers[0]) == {"scribe": Outcome.FAILED}
    assert "stopped or deleted while it started" in answers[0].sessions[0].detail
    assert system.runner.survey().panes == ()


def test_starts_at_once_make_one_pane(world: World) -> None:
    """Four at a time, each with its own connections: one starts it, the others find it running."""
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(start_standing(world.system(), "scribe", ACTOR)))
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    found = sorted(str(row.outcome) for answer in answers for row in answer.sessions)
    assert found == sorted(map(str, [Outcome.STARTED, *[Outcome.ALREADY_RUNNING] * 3]))
    assert len(world.system().runner.survey().panes) == 1
    assert len(world.log()) == 1


def test_message_for_a_stopped_session_names_the_start_command(system: System) -> None:
    """say into a stopped session: LookupError naming `the-loop standing start NAME`; nothing is started."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)

    with pytest.raises(NotRunning, match="the-loop standing start scribe") as caught:
        say(system, "scribe", "hello", actor=ACTOR)

    assert isinstance(caught.value, LookupError)
    assert get_standing(system, "scribe").live is Live.ABSENT


# ---------------------------------------------------------------- announcing


def test_first_start_announces_a_root_and_later_ones_reply(world: World) -> None:
    """One root, to the configured channel; once it is bound, a reply and the root's new state."""
    system = replace(world, slack=True).system()
    start_standing(system, "scribe", ACTOR)
    [root] = posts(system)
    record = recorded(system, "scribe")
    [row] = system.outbox.due("slack", system.clock.now())
    system.outbox.drop(record.uid, said("posted by nobody: this test has no service"))
    system.bindings.bind(Binding("slack", "T1", "C1", "1.1", record.uid, "scribe", system.clock.now()))

    stop_standing(system, "scribe", ACTOR)
    [note] = system.outbox.due("slack", system.clock.now())
    system.outbox.advance(system.outbox.advance(note, PostState.SENDING), PostState.SENT, ts="1.2")
    [stopped] = posts(system)
    system.outbox.drop(record.uid, said("posted by nobody: this test has no service"))
    start_standing(system, "scribe", ACTOR)

    [reply] = posts(system)
    assert (note.post.kind, note.post.text) == (OutboundKind.NOTE, "`scribe` was stopped by cli:ann.")
    assert (stopped.kind, "is stopped by cli:ann" in stopped.text) == (OutboundKind.ROOT_UPDATE, True)
    assert (root.kind, reply.kind, row.post.id) == (OutboundKind.ROOT, OutboundKind.BOOT, root.id)
    assert root.text.startswith(f"`scribe` · script · `{world.cwd}` · ")
    assert "It is up, with a new conversation. Reply" in root.text
    assert ACTOR not in root.text
    assert "standing:scribe" in root.text
    assert "up again — resumed, its conversation goes on (started by cli:ann)" in reply.text
    assert recorded(system, "scribe").thread == Thread("slack", "C1", "1.1")


def test_root_that_was_not_posted_yet_is_not_made_twice(world: World) -> None:
    """Without a service it waits; a second start before that is a reply behind it."""
    system = replace(world, slack=True).system()

    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    start_standing(system, "scribe", ACTOR)

    uid = recorded(system, "scribe").uid
    assert [post.kind for post in posts(system)] == [OutboundKind.ROOT]
    assert system.outbox.drop(uid, said("count them")) == 4  # root, its stop, reply, its new state


def test_session_without_a_thread_announces_nothing(system: System) -> None:
    """Neither where the channel is off, nor where the session wants none."""
    start_standing(system, "scribe", ACTOR)

    assert posts(system) == []
