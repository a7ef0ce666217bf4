"""Rows and answers as they are printed."""

from datetime import UTC, datetime

from core.model.rows import Answer, Row, drift, misconfigured_row
from core.model.session import ChatBinding, Definition, Hold, HoldKind, Live, Outcome, Status, Thread

KEYS = {
    "name", "uid", "declared", "description", "autoStart", "harness", "cwd", "tmuxTarget", "attach", "ref", "status",
    "running", "live", "phase", "hold", "activity", "hooks", "permissionMode", "harnessVersion", "capabilities",
    "pendingTasks", "working", "queued", "loops",
    "harnessSessionId",
    "chat", "slackChannel", "slackThread", "startedAt", "lastMessageAt", "drift", "outcome", "detail",
}  # fmt: skip
AT = datetime(2026, 11, 29, 13, 50, tzinfo=UTC)


def test_row_has_exactly_the_contracts_keys() -> None:
    """People script against these names."""
    assert set(Row("scribe").to_json()) == KEYS


def test_row_is_plain_json() -> None:
    """Enums are their words, times are UTC, a hold is an object."""
    hold = Hold(HoldKind.STOPPED, "cli:ann", "enough", AT)
    row = Row("scribe", status=Status.STOPPED, live=Live.ABSENT, hold=hold, started_at=AT, pending_tasks=("t1",))

    shown = row.to_json()

    assert (shown["status"], shown["live"], shown["pendingTasks"]) == ("stopped", "absent", ["t1"])
    assert shown["startedAt"] == "2026-11-29T13:50:00.000000Z"
    assert shown["hold"] == {
        "kind": "stopped",
        "policy": "hard",
        "by": "cli:ann",
        "reason": "enough",
        "at": "2026-11-29T13:50:00.000000Z",
    }


def test_a_thread_is_shown_by_its_chat() -> None:
    """A row says in which chat its thread is; that of Slack stands in the keys of earlier releases, too."""
    slack = Row("scribe", thread=Thread("slack", "C1", "1.1")).to_json()
    other = Row("scribe", thread=Thread("line", "room", "7")).to_json()
    none = Row("scribe").to_json()

    assert slack["chat"] == {"slack": {"channel": "C1", "thread": "1.1"}}
    assert (slack["slackChannel"], slack["slackThread"]) == ("C1", "1.1")
    assert other["chat"] == {"line": {"channel": "room", "thread": "7"}}
    assert none["chat"] == {}
    assert {row["slackChannel"] for row in (other, none)} == {row["slackThread"] for row in (other, none)} == {None}


def test_a_changed_chat_is_drift_under_its_kind() -> None:
    """The key that changed is the chat's, as the configuration writes it; one of which nothing is said is no change."""
    before = Definition("scribe", chat={"slack": ChatBinding(True)})

    assert drift(before, before) == ()
    assert drift(before, Definition("scribe", chat={"slack": ChatBinding(True, "C2")})) == ("slack",)
    assert drift(before, Definition("scribe", chat={"line": ChatBinding(True)})) == ("line", "slack")


def test_row_says_nothing_twice() -> None:
    """What the verb and the row both have to say stands there once, in its order."""
    row = Row("a", detail="tmux: no answer; nothing was concluded").told(Outcome.FAILED, "tmux: no answer; try again")

    assert row.detail == "tmux: no answer; try again; nothing was concluded"


def test_a_remark_with_a_semicolon_in_brackets_stays_whole() -> None:
    """Only remarks that stand side by side are compared: what is in brackets belongs to its own."""
    ended = "its harness ended at once (exit 3; its conversation is kept)"
    row = Row("a", detail=f"{ended}; its conversation is kept").told(Outcome.FAILED, f"{ended}; see (a; (b; c); a)")

    assert row.detail == f"{ended}; see (a; (b; c); a); its conversation is kept"


def test_answer_is_well_unless_a_row_failed() -> None:
    """Held and not-running are no failures; failed, unconfirmed, unreadable and misconfigured are."""
    well = Answer((Row("a", outcome=Outcome.HELD), Row("b", outcome=Outcome.NOT_RUNNING)))

    assert well.ok
    for outcome in (Outcome.FAILED, Outcome.UNCONFIRMED, Outcome.UNREADABLE, Outcome.MISCONFIGURED):
        assert not Answer((*well.sessions, Row("c", outcome=outcome))).ok


def test_malformed_configuration_is_one_row() -> None:
    """The lifecycle shows a broken block as one misconfigured row that names the key."""
    answer = Answer((misconfigured_row("standingSessions.sessions[0].name: …"),))

    assert answer.to_json()["sessions"][0]["outcome"] == "misconfigured"
    assert not answer.ok


def test_drift_names_changed_keys() -> None:
    """What was changed since the last start is named as the configuration names it."""
    recorded = Definition("scribe", prompt="a", harness_args=("--x",))

    changed = drift(recorded, Definition("scribe", prompt="b", auto_start=False))

    assert changed == ("harnessArgs", "prompt", "autoStart")
