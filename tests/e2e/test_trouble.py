"""A service that crashes, a Slack that is away or fails: sessions go on, and nothing is lost or doubled."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from embedded.workspace.thread import WorkspaceThread
from tests.support.product import BOT_VARIABLE, NAME, Product, is_root, product
from tests.support.tmux import alive, wait_until


def test_the_next_service_adopts_what_a_killed_one_left(talking: Product) -> None:
    """After kill -9 the pane lives on in the same process; a reply of meanwhile comes by Slack's retry, once."""
    first = talking.serve().wait_swept()
    thread = talking.root()
    [pid] = talking.panes().values()
    first.kill()

    talking.workspace.say("alice", "agents", "while you were away", thread)
    talking.workspace.wait_for(lambda c: c.connections() == 0)
    talking.serve().wait_swept()
    talking.wait_reply(thread, "while you were away")

    assert talking.panes() == {NAME: pid}
    assert alive(pid)
    assert talking.count("while you were away") == 1
    assert talking.events("standing.adopted")[-1]["name"] == NAME
    assert len(talking.events("standing.started")) == 1
    assert len(talking.roots()) == 1


def test_an_orderly_end_of_the_service_leaves_the_panes(talking: Product) -> None:
    """SIGTERM ends the service with 0 within seconds; the agent lives, and `say` reaches it without a service."""
    service = talking.serve().wait_swept()
    [pid] = talking.panes().values()

    code = service.stop()
    said = talking.cli("standing", "say", NAME, "--text", "still there?", "--json")

    assert code == 0
    assert talking.panes() == {NAME: pid}
    assert (said.code, said.json["state"]) == (0, "confirmed")
    assert talking.events("service.stopped")[-1]["reason"] == "SIGTERM"


def test_a_session_does_not_wait_for_slack(tmp_path: Path) -> None:
    """With Slack away the session is up at once and takes messages; the announcement follows when Slack is there."""
    database = tmp_path / "workspace.db"
    with ExitStack() as stack:
        with WorkspaceThread(database) as gone:
            port = int(gone.url.rpartition(":")[2])
            talking = stack.enter_context(product(gone))
        talking.serve().wait_swept()
        said = talking.cli("standing", "say", NAME, "--text", "without Slack", "--json")
        status = talking.cli("status", "--json")

        back = stack.enter_context(WorkspaceThread(database, port))
        back.wait_for_message(is_root)

        assert (said.code, said.json["state"]) == (0, "confirmed")
        assert (status.services["service"]["running"], status.services["slack"]["running"]) == (True, False)
        assert talking.events("standing.announce_failed") == []
        assert [is_root(message) for message in back.messages("agents")].count(True) == 1


def test_failures_that_pass_delay_an_announcement_and_nothing_else(talking: Product) -> None:
    """A 503 and a 429: the session is up and takes messages meanwhile, and one root stands in the end."""
    talking.workspace.fault("chat.postMessage", "http", status=503)
    talking.workspace.fault("chat.postMessage", "ratelimited", seconds=1)

    talking.serve().wait_swept()
    said = talking.cli("standing", "say", NAME, "--text", "meanwhile", "--json")
    talking.root()

    assert said.json["state"] == "confirmed"
    assert talking.events("standing.announce_failed") == []
    assert len(talking.roots()) == 1


def test_a_post_whose_answer_was_lost_is_not_repeated(talking: Product) -> None:
    """Slack took the root and the answer never came: the root is found again and bound; a second one is not made."""
    talking.workspace.fault("chat.postMessage", "lost")

    talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.say("alice", "agents", "bound all the same", thread)
    talking.wait_reply(thread, "bound all the same")

    assert len(talking.roots()) == 1


def test_a_refusal_for_good_is_told_once_and_stops_no_session(talking: Product) -> None:
    """A channel that is not there: one announce_failed, no retry, and the session works."""
    talking.workspace.fault("chat.postMessage", "error", count=100, code="channel_not_found")

    talking.serve().wait_swept()
    [failed] = talking.wait_event("standing.announce_failed")
    said = talking.cli("standing", "say", NAME, "--text", "never mind", "--json")
    status = talking.cli("status", "--json")

    assert failed["name"] == NAME
    assert "channel_not_found" in failed["reason"]
    assert said.json["state"] == "confirmed"
    assert len(talking.events("standing.announce_failed")) == 1
    assert (status.code, status.json["standingSessions"][0]["running"]) == (0, True)


def test_a_wrong_token_leaves_the_service_running_and_tells_the_remedy(talking: Product) -> None:
    """Slack refuses the token: the service goes on, its sessions too, and status names what to set."""
    talking.serve(env={BOT_VARIABLE: "xoxb-wrong"}).wait_swept()

    wait_until(lambda: _slack(talking)["detail"] != "not connected yet", "what Slack answers is known")
    status = talking.cli("status", "--json")

    row = _slack(talking)
    assert status.code == 1
    assert status.services["service"]["running"] is True
    assert row["running"] is False
    assert "invalid_auth" in row["detail"]
    assert BOT_VARIABLE in row["detail"] or "token" in row["detail"]
    assert "xoxb-wrong" not in status.out
    assert list(talking.panes()) == [NAME]


def test_a_token_revoked_under_an_open_socket_keeps_the_posts(talking: Product) -> None:
    """The socket stays up and says nothing; status names the remedy, and the next service posts what waited."""
    service = talking.serve().wait_swept()
    talking.root()
    talking.workspace.set_revoked()

    stopped = talking.cli("standing", "stop", NAME)
    wait_until(lambda: "token_revoked" in _slack(talking)["detail"], "the row tells it")
    row = _slack(talking)
    service.stop()
    talking.workspace.set_revoked(False)
    talking.serve().wait_swept()

    assert stopped.code == 0
    assert row["running"] is False
    assert "reinstall" in row["detail"]
    wait_until(
        lambda: any(f"`{NAME}` is stopped by" in m["text"] for m in talking.workspace.messages("agents")),
        "so says the root",
    )


def test_a_missing_token_is_named_by_its_variable(talking: Product) -> None:
    """A variable that is not set is told by name and with what to set it to, in status and in the service's log."""
    service = talking.serve(env={BOT_VARIABLE: ""}).wait_swept()

    wait_until(lambda: BOT_VARIABLE in _slack(talking)["detail"], "the variable is named")

    assert _slack(talking)["running"] is False
    assert "xoxb-" in _slack(talking)["detail"]
    assert BOT_VARIABLE in service.output()
    assert list(talking.panes()) == [NAME]


def _slack(talking: Product) -> dict[str, Any]:
    return talking.cli("status", "--json").services["slack"]
