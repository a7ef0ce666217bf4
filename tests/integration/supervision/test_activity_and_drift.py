"""What a session does is shown and told: jobs, errors, stalls; and what its configuration says by now."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.delivery.saying import say
from core.lifecycle.look import get_standing
from core.lifecycle.pause import restart_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.lifecycle.supervise import STALLED, Drift, Stalls
from core.model.activity import ActivityState, Capability
from core.model.framing import framed
from core.model.message import DELIVERED
from core.model.posts import OutboundKind
from core.model.session import Restart
from core.session.system import System
from embedded.adapter import BundledHarness
from tests.integration.delivery.conftest import open_dialog, settle
from tests.integration.lifecycle.held import begin_job, end_job
from tests.integration.supervision.conftest import Supervised, crash, notes, up, with_sessions
from tests.support.clocks import MovedClock
from tests.support.talking import settings_of
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, definition, events, recorded

WRAPPED = '\n\n<pasted_content id="3770">\n{}\n</pasted_content id="3770">\n'
UNFINISHED = "had not finished when its program ended before"


@pytest.fixture
def scribe(system: System) -> System:
    """Give the world's ports with `scribe` up."""
    return up(system)


@pytest.fixture
def clock() -> MovedClock:
    """Give a clock that a test moves."""
    return MovedClock()


def report(system: System, event: str, **fields: object) -> None:
    """Let the harness's hook report something, and take it in."""
    record = recorded(system, "scribe")
    now = f"{int(system.clock.now().timestamp() * 1e9):019d}"
    path = system.paths.spool_of(record.instance_id or "") / f"{now}-1-{event}.json"
    path.write_text(json.dumps({"hook_event_name": event, **fields}))
    system.ingest(record.uid)


# ---------------------------------------------------------------- the mode


def test_the_row_shows_the_mode_that_the_harness_tells_of(scribe: System) -> None:
    """The latest report that names one counts; a subagent's own does not."""
    settle(scribe)
    told = get_standing(scribe, "scribe").permission_mode

    report(scribe, "UserPromptSubmit", prompt="x", permission_mode="plan")
    report(scribe, "PostToolUse", tool_name="Bash", agent_id="a1", permission_mode="acceptEdits")
    report(scribe, "Stop", last_assistant_message="", background_tasks=[])

    row = get_standing(scribe, "scribe")
    assert (told, row.permission_mode) == ("default", "plan")
    assert row.to_json()["permissionMode"] == "plan"


def test_nothing_is_said_of_the_mode_of_what_does_not_run(scribe: System) -> None:
    """The next start may bring another."""
    settle(scribe)

    stop_standing(scribe, "scribe", "cli:ann")

    assert get_standing(scribe, "scribe").permission_mode is None


# ---------------------------------------------------------------- jobs


def test_a_background_job_is_listed_until_it_ends(scribe: System) -> None:
    """It is told when it began and when it ended, and the session is idle only then."""
    job = begin_job(scribe)
    assert get_standing(scribe, "scribe").pending_tasks
    [began] = events(scribe, "job.started")

    end_job(job)
    settle(scribe)

    [over] = events(scribe, "job.finished")
    row = get_standing(scribe, "scribe")
    assert began["detail"] == over["detail"]
    assert (row.activity, row.pending_tasks) == (ActivityState.IDLE, ())


def test_a_list_right_after_a_service_restart_knows_everything(scribe: System) -> None:
    """Activity and pending tasks are there at once, since nobody has to be asked."""
    say(scribe, "scribe", "background 60", actor=ACTOR)
    wait_until(lambda: get_standing(scribe, "scribe").pending_tasks, "the job is listed")
    before = get_standing(scribe, "scribe")

    Supervised(scribe).start().stop()
    after = get_standing(scribe, "scribe")

    assert (after.activity, after.pending_tasks) == (ActivityState.BUSY, before.pending_tasks)


def shown_unfinished(system: System) -> tuple[bool, list[str], list[str]]:
    """Return whether the row names a task that had not finished, and what the events and the thread say of one."""
    told = [event.get("detail", "") for event in events(system, "standing.resumed")]
    boots = notes(system, "is up again", kind=OutboundKind.BOOT)
    return UNFINISHED in get_standing(system, "scribe").detail, told, boots


@pytest.fixture
def threaded(world: World) -> Iterator[System]:
    """Give the world's ports with `scribe` up, whose starts are announced in its thread."""
    with_slack = replace(world, slack=True)
    system = with_slack.system(settings_of(with_slack))
    yield up(system)
    system.close()


@pytest.mark.parametrize("crashing", [False, True], ids=["stopped", "crashed"])
def test_a_job_that_its_session_ended_is_told_at_the_resume_once(threaded: System, *, crashing: bool) -> None:
    """Row, event and thread name what it ran; the row until somebody has spoken to the session again."""
    scribe = threaded
    say(scribe, "scribe", "background 60", actor=ACTOR)
    wait_until(lambda: get_standing(scribe, "scribe").pending_tasks, "the job is listed")
    [job] = get_standing(scribe, "scribe").pending_tasks
    if crashing:
        crash(scribe)
    else:
        stop_standing(scribe, "scribe", ACTOR)

    [resumed] = start_standing(scribe, "scribe", ACTOR).sessions
    settle(scribe)
    first = shown_unfinished(scribe)
    restart_standing(scribe, "scribe", ACTOR)
    settle(scribe)
    second = shown_unfinished(scribe)

    assert f"{UNFINISHED}: sleep 60 ({job})" in resumed.detail
    assert (first[0], second[0]) == (True, False)
    assert [f"sleep 60 ({job})" in text for text in second[1]] == [True, False]
    assert [f"sleep 60 ({job})" in text for text in second[2]] == [True, False]
    [over] = events(scribe, "job.finished")
    assert (over["detail"], over["reason"]) == (job, "its session ended")


def test_a_job_that_was_cut_off_is_no_news_once_somebody_has_spoken(scribe: System) -> None:
    """The next turn that a person begins ends the remark."""
    say(scribe, "scribe", "background 60", actor=ACTOR)
    wait_until(lambda: get_standing(scribe, "scribe").pending_tasks, "the job is listed")
    restart_standing(scribe, "scribe", ACTOR)
    settle(scribe)
    before = shown_unfinished(scribe)[0]

    say(scribe, "scribe", "hello again", actor=ACTOR)
    settle(scribe)

    assert (before, shown_unfinished(scribe)[0]) == (True, False)


# ---------------------------------------------------------------- what it says


def test_a_usage_limit_is_shown_and_the_session_is_idle(scribe: System) -> None:
    """The turn is over, and the row says by what."""
    report(scribe, "StopFailure", error="rate_limit", last_assistant_message="API Error: too many requests")

    row = get_standing(scribe, "scribe")
    assert row.activity is ActivityState.IDLE
    assert "its account has used up its limit (API Error: too many requests)" in row.detail


def test_a_failed_turn_that_took_nobodys_message_is_told_once(scribe: System) -> None:
    """A tick that fails each time says so in the thread until a turn went well, or fails for another reason."""
    settle(scribe)

    for error in ("authentication_failed", "authentication_failed", "rate_limit"):
        report(scribe, "UserPromptSubmit", prompt="[the-loop #abcdef] tick")
        report(scribe, "StopFailure", error=error, last_assistant_message="no")
    failed = notes(scribe, "A turn of `scribe` failed")
    report(scribe, "Stop", last_assistant_message="", background_tasks=[])
    report(scribe, "StopFailure", error="rate_limit", last_assistant_message="no")
    after = notes(scribe, "A turn of `scribe` failed")

    assert ["not logged in" in text for text in failed] == [True, False]
    assert "used up its limit" in failed[1]
    assert len(after) == 3


def test_an_error_does_not_make_a_session_idle_whose_tasks_go_on(scribe: System) -> None:
    """It is busy with them, and the error is shown all the same."""
    say(scribe, "scribe", "background 60", actor=ACTOR)
    uid = recorded(scribe, "scribe").uid

    def goes_on_alone() -> bool:
        get_standing(scribe, "scribe")  # takes in what was reported
        known = scribe.activities.get(uid)
        return known is not None and known.between_turns

    wait_until(goes_on_alone, "only the job goes on")
    report(scribe, "StopFailure", error="server_error", last_assistant_message="")

    row = get_standing(scribe, "scribe")
    assert row.activity is ActivityState.BUSY
    assert "server_error" in row.detail
    activity = scribe.activities.get(recorded(scribe, "scribe").uid)
    assert activity is not None
    assert activity.between_turns


def test_what_it_asks_is_shown(scribe: System, private: PrivateTmux) -> None:
    """A person sees in the list what waits for them."""
    open_dialog(scribe, private)

    row = get_standing(scribe, "scribe")

    assert row.activity is ActivityState.PERMISSION
    assert "Bash" in row.detail


# ---------------------------------------------------------------- stalls


@pytest.fixture
def busy(scribe: System, clock: MovedClock) -> System:
    """Give `scribe` in a turn that takes longer than the test."""
    say(scribe, "scribe", "sleep 600", actor=ACTOR)
    record = recorded(scribe, "scribe")
    shown = "Bash: sleep 600"  # once its report of that is written, which is the last for long
    wait_until(lambda: shown in scribe.runner.screen(record.instance_id or "", 200), "a turn runs, and its tool")
    scribe.ingest(record.uid)
    assert get_standing(scribe, "scribe").activity is ActivityState.BUSY
    return replace(scribe, clock=clock)


def watch(system: System, stalls: Stalls) -> None:
    """Let the stalls be looked at once."""
    stalls.turn([recorded(system, "scribe")], system.runner.survey())


def test_a_turn_without_a_sign_of_life_is_shown_and_told_once(busy: System, clock: MovedClock) -> None:
    """Nothing is done to it."""
    stalls = Stalls(busy)
    clock.move(minutes=6)
    watch(busy, stalls)
    early = events(busy, "standing.stalled")

    clock.move(minutes=5)
    for _ in range(3):
        watch(busy, stalls)
    watch(busy, Stalls(busy))

    row = get_standing(busy, "scribe")
    assert early == []
    assert len(events(busy, "standing.stalled")) == 1
    assert (row.running, row.activity) == (True, ActivityState.BUSY)
    assert "no sign of life since" in row.detail


def test_a_conversation_that_cannot_be_read_ends_no_round(busy: System, clock: MovedClock) -> None:
    """Its own stall cannot be told; the supervisor goes on."""
    record = recorded(busy, "scribe")
    [conversation] = busy.paths.session(record.uid).glob("agent/conversations/*.jsonl")
    stalls = Stalls(busy)
    clock.move(minutes=6)
    watch(busy, stalls)
    conversation.unlink()
    conversation.mkdir()

    watch(busy, stalls)

    assert events(busy, "standing.stalled") == []


def test_a_screen_that_changes_is_a_sign_of_life(busy: System, clock: MovedClock, private: PrivateTmux) -> None:
    """Ten minutes count from the last change."""
    stalls = Stalls(busy)
    clock.move(minutes=6)
    watch(busy, stalls)
    private.tmux("send-keys", "-l", "-t", "=loop-standing-scribe:", "typing")
    wait_until(lambda: "typing" in busy.runner.screen(recorded(busy, "scribe").instance_id or "", 50), "it shows")

    clock.move(minutes=5)
    watch(busy, stalls)
    clock.move(minutes=6)
    watch(busy, stalls)
    early = events(busy, "standing.stalled")
    clock.move(minutes=5)
    watch(busy, stalls)

    assert early == []
    assert len(events(busy, "standing.stalled")) == 1


def test_a_report_ends_a_stall(busy: System, clock: MovedClock) -> None:
    """The row says what it does now, and a later stall is told anew."""
    stalls = Stalls(busy)
    for _ in range(2):
        clock.move(minutes=11)
        watch(busy, stalls)
    report(busy, "PreToolUse", tool_name="Bash")
    alive_again = get_standing(busy, "scribe").detail
    for _ in range(3):
        clock.move(seconds=STALLED.total_seconds())
        watch(busy, stalls)

    assert "no sign of life" not in alive_again
    assert len(events(busy, "standing.stalled")) == 2


# ---------------------------------------------------------------- drift


def test_a_changed_entry_is_shown_and_told_once(scribe: System) -> None:
    """What runs goes on as it was started; each further change is told once."""
    changed = replace(definition("scribe"), restart=Restart.ON_FAILURE, cwd="/elsewhere")
    system = with_sessions(scribe, changed)
    for _ in range(2):
        Drift(system, lambda: system.settings).turn()

    [event] = events(scribe, "standing.drift")
    assert event["reason"] == "cwd, restart"
    assert get_standing(system, "scribe").drift == ("cwd", "restart")
    again = with_sessions(scribe, replace(changed, description="other"))
    Drift(again, lambda: again.settings).turn()
    assert len(events(scribe, "standing.drift")) == 2


def test_a_removed_entry_is_shown_and_told_once(scribe: System) -> None:
    """The session goes on by its record, and says that nobody declares it any more."""
    system = with_sessions(scribe)
    for _ in range(2):
        Drift(system, lambda: system.settings).turn()

    row = get_standing(system, "scribe")
    assert not row.declared
    assert "entry was removed from the configuration" in row.detail
    assert "the-loop standing delete scribe" in row.detail
    [event] = events(scribe, "standing.drift")
    assert "removed" in event["reason"]


def test_a_created_session_has_no_entry_to_lose(scribe: System) -> None:
    """It was never declared."""
    record = recorded(scribe, "scribe")
    with scribe.locks.hold("scribe", "test", 1):
        scribe.records.write(replace(record, declared=False))
    system = with_sessions(scribe)

    Drift(system, lambda: system.settings).turn()

    assert get_standing(system, "scribe").detail == ""
    assert not events(scribe, "standing.drift")


@pytest.mark.parametrize("declared", [True, False])
def test_another_default_harness_is_shown_and_told_once(scribe: System, declared: bool) -> None:
    """A session without a harness of its own would be started as another program."""
    record = recorded(scribe, "scribe")
    with scribe.locks.hold("scribe", "test", 1):
        scribe.records.write(replace(record, declared=declared))
    system = scribe if declared else with_sessions(scribe)
    routing = system.settings.routing._replace(default_harness="mute")
    system = replace(system, settings=system.settings._replace(routing=routing))

    for _ in range(2):
        Drift(system, lambda: system.settings).turn()

    [event] = events(scribe, "standing.drift")
    assert event["reason"] == "routing.defaultHarness"
    assert "the-loop standing restart scribe" in event["detail"]
    assert get_standing(system, "scribe").drift == ("routing.defaultHarness",)


def test_another_default_harness_is_nothing_to_a_session_with_one_of_its_own(scribe: System) -> None:
    """Its entry says what it is, whatever the default."""
    record = recorded(scribe, "scribe")
    own = replace(record.definition, harness="bundled")
    with scribe.locks.hold("scribe", "test", 1):
        scribe.records.write(replace(record, definition=own))
    system = with_sessions(scribe, own)
    routing = system.settings.routing._replace(default_harness="mute")
    system = replace(system, settings=system.settings._replace(routing=routing))

    Drift(system, lambda: system.settings).turn()

    assert not events(scribe, "standing.drift")
    assert get_standing(system, "scribe").drift == ()


def test_a_file_that_changed_is_read_again(scribe: System, world: World, tmp_path: Path) -> None:
    """A running service tells of the change, and does not take it over."""
    file = tmp_path / "config"
    file.write_text("one")
    system = replace(scribe, settings=scribe.settings._replace(source=file))
    changed = with_sessions(system, replace(definition("scribe"), description="new")).settings
    drift = Drift(system, lambda: changed)
    drift.turn()
    before = events(scribe, "standing.drift")

    file.write_text("another")
    drift.turn()

    assert before == []
    assert [event["reason"] for event in events(scribe, "standing.drift")] == ["description"]


def test_the_row_tells_what_the_program_has_shown_of_itself(scribe: System) -> None:
    """Proven is what this instance has shown; the rest is guessed, and what it lacks says what follows."""
    say(scribe, "scribe", "one\ntwo", actor=ACTOR)
    row = scribe.inbox.with_states(recorded(scribe, "scribe").uid, DELIVERED)[0]
    prompt = WRAPPED.format(framed(row.message))
    report(scribe, "UserPromptSubmit", prompt=prompt, prompt_id="t-7", permission_mode="plan")
    report(scribe, "Stop", last_assistant_message="done", prompt_id="t-7")

    shown = get_standing(scribe, "scribe")

    assert shown.capabilities is not None
    grades = shown.to_json()["capabilities"]
    assert (grades["boot hook"], grades["turn edges"], grades["mode"]) == ("proven", "proven", "proven")
    assert (grades["pasting"], grades["permission hook"]) == ("missing", "guessed")
    assert "pasting is missing in this version" in shown.detail


def test_what_no_version_of_a_program_can_do_is_missing_from_the_start_on(
    scribe: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for an instance to show it."""
    lacking = replace(BundledHarness.traits, lacks=frozenset({Capability.PERMISSION_HOOK}))
    monkeypatch.setattr(BundledHarness, "traits", lacking)

    restart_standing(scribe, "scribe", ACTOR)

    row = get_standing(scribe, "scribe")
    assert row.to_json()["capabilities"]["permission hook"] == "missing"
    assert "permission hook is missing" in row.detail
