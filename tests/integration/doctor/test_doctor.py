"""`the-loop doctor` on an installation that is well, and on some that are not: each trouble with its remedy."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.base.clock import SystemClock
from core.doctor import chats, terminal
from core.doctor.checks import checks_of
from core.doctor.running import Check, run_all
from core.model.health import Finding, State, all_well
from core.service.wiring import build_rescue_system
from embedded.workspace.thread import WorkspaceThread
from tests.support.product import NAME, Product, product
from tests.support.tmux import launcher, wait_until


@pytest.fixture
def alone() -> Iterator[Product]:
    """Give a product without a chat, of which nothing runs."""
    with product() as running:
        yield running


@pytest.fixture(scope="module")
def talking() -> Iterator[Product]:
    """Give a product whose session has a thread in a workspace, once both are up."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, product(workspace) as running:
        running.serve().wait_swept()
        running.wait_reply(running.root(), "Ready.")
        yield running


def found(product: Product, *names: str, env: Mapping[str, str] | None = None, live: bool = False) -> list[Finding]:
    """Return what the checks of these names find; of all, without names."""
    environ = {**product.environ(), **(env or {})}
    system = build_rescue_system(product.config, environ, lambda _: None)
    try:
        checks = checks_of(system, product.config, environ, live=live)
        return list(run_all([one for one in checks if not names or one.name in names], SystemClock()))
    finally:
        system.close()


def only(findings: list[Finding], name: str) -> Finding:
    """Return the one finding of that name."""
    [one] = [finding for finding in findings if finding.name == name]
    return one


def program(folder: Path, name: str, body: str) -> dict[str, str]:
    """Put a program of that name first on PATH, and return the change of the environment."""
    launcher(folder / name, body)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


# ---------------------------------------------------------------- well


def test_an_installation_in_order_is_found_so(talking: Product) -> None:
    """By the command itself, with a message that goes round; the answer is JSON of a fixed form."""
    done = talking.cli("doctor", "--live", "--json")

    findings = done.json["findings"]
    assert [one for one in findings if one["state"] not in ("ok", "warning")] == []
    assert (done.code, done.json["ok"]) == (0, True)
    assert all(set(one) == {"name", "state", "detail", "remedy"} for one in findings)
    names = {one["name"] for one in findings}
    assert {"python", "locale", "disk", "permissions", "tmux", "pasting", "tmux server", "harness bundled"} <= names
    assert {"configuration", "database", "service", "slack: scopes", "slack: channel", "slack: round trip"} <= names
    trip = next(one for one in findings if one["name"] == "slack: round trip")
    assert "came back to the service" in trip["detail"]
    assert not any("removed at once" in message["text"] for message in talking.workspace.messages("agents"))


def test_nothing_is_left_behind(alone: Product) -> None:
    """The scratch pane, its server and its folder go; nothing of the state is made."""
    before = set(Path(os.environ["TMPDIR"]).iterdir())

    assert only(found(alone, "pasting", "disk", "permissions", "database"), "pasting").state is State.OK

    assert set(Path(os.environ["TMPDIR"]).iterdir()) == before
    assert not alone.paths.root.exists()


def test_warnings_fail_only_a_strict_run() -> None:
    """What could not be asked is not well in either."""
    ok, warned, unknown = (Finding("x", state, "") for state in (State.OK, State.WARNING, State.UNKNOWN))

    assert all_well([ok, warned])
    assert not all_well([ok, warned], strict=True)
    assert not all_well([ok, unknown])


# ---------------------------------------------------------------- tmux


def test_without_tmux(alone: Product, tmp_path: Path) -> None:
    """The remedy names the version that is needed."""
    findings = found(alone, "tmux", "pasting", env={"PATH": str(tmp_path)})

    assert [(one.name, one.state) for one in findings] == [("tmux", State.FAILED), ("pasting", State.FAILED)]
    assert "install tmux 3.2 or newer" in findings[0].remedy


def test_tmux_that_is_too_old(alone: Product, tmp_path: Path) -> None:
    """It is named with its version."""
    finding = only(found(alone, "tmux", env=program(tmp_path, "tmux", "echo tmux 2.9a")), "tmux")

    assert finding.state is State.FAILED
    assert "2.9a is too old" in finding.detail


def test_tmux_that_hangs_holds_up_nothing(alone: Product, tmp_path: Path) -> None:
    """It could not be asked, which is neither well nor failed; all the rest is found."""
    findings = found(alone, "python", "tmux", "pasting", "disk", env=program(tmp_path, "tmux", "exec sleep 300"))

    states = {one.name: one.state for one in findings}
    assert states == {"python": State.OK, "tmux": State.UNKNOWN, "pasting": State.UNKNOWN, "disk": State.OK}


def test_tmux_that_changes_a_text(alone: Product, tmp_path: Path) -> None:
    """The kinds of text that do not arrive are named."""
    real = shutil.which("tmux")
    body = f'case "$*" in *load-buffer*) sed "s/make;/make/" | "{real}" "$@";; *) exec "{real}" "$@";; esac'

    finding = only(found(alone, "pasting", env=program(tmp_path, "tmux", body)), "pasting")

    assert finding.state is State.FAILED
    assert "a semicolon at the end" in finding.detail
    assert "100 kB" not in finding.detail


def test_a_frozen_server_is_not_called_gone(alone: Product) -> None:
    """While it does not answer nothing is concluded."""
    document = alone.document()
    document["routing"]["tmux"]["commandTimeoutSeconds"] = 1
    alone.configure(routing=document["routing"])
    alone.tmux("new-session", "-d", "sleep 300")
    server = int(alone.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        finding = only(found(alone, "tmux server"), "tmux server")
    finally:
        os.kill(server, signal.SIGCONT)

    assert finding.state is State.UNKNOWN
    assert finding.remedy


def machine(folder: Path, pid: int, cgroup: str) -> Path:
    """Make the files of a machine on which systemd runs, for nobody lingers, and a process is in that cgroup."""
    (folder / "run/systemd/system").mkdir(parents=True)
    (folder / f"proc/{pid}").mkdir(parents=True)
    (folder / f"proc/{pid}/cgroup").write_text(f"0::{cgroup}\n")
    return folder


@pytest.mark.parametrize(
    ("cgroup", "part"),
    [
        ("/user.slice/user-1000.slice/session-7.scope", "belongs to a login"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/the-loop.service", "inside of the-loop.service"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope", "last logout"),
    ],
)
def test_a_server_that_would_be_ended_with_something_else(
    alone: Product, tmp_path: Path, cgroup: str, part: str
) -> None:
    """A logout, or the end of a service, would end every agent: each with its remedy."""
    alone.tmux("new-session", "-d", "sleep 300")
    pid = int(alone.tmux("display-message", "-p", "#{pid}"))
    system = build_rescue_system(alone.config, alone.environ(), lambda _: None)
    try:
        findings = list(terminal.server(system, machine(tmp_path, pid, cgroup)))
    finally:
        system.close()

    ends = only(findings, "ends with")
    assert ends.state is State.WARNING
    assert part in ends.detail
    assert ends.remedy


def test_without_linger_a_logout_is_warned_of_before_anything_runs(alone: Product, tmp_path: Path) -> None:
    """The first start is soon enough to know it."""
    system = build_rescue_system(alone.config, alone.environ(), lambda _: None)
    try:
        findings = list(terminal.server(system, machine(tmp_path, 1, "/")))
    finally:
        system.close()

    assert "enable-linger" in only(findings, "ends with").remedy


# ---------------------------------------------------------------- programs


def test_a_harness_that_is_not_installed(alone: Product) -> None:
    """A session needs it, so it failed."""
    routing = {**alone.document()["routing"], "defaultHarness": "absent"}
    alone.configure(routing=routing, harnesses={"absent": {"start": ["the-loop-test-no-such-program"]}})

    finding = only(found(alone, "harness absent"), "harness absent")

    assert finding.state is State.FAILED
    assert "the-loop-test-no-such-program" in finding.detail


def test_a_harness_that_nobody_tried_and_that_is_not_logged_in(alone: Product, tmp_path: Path) -> None:
    """Both are warnings: it may work. A log-in is looked for, and no value of it is shown."""
    alone.configure(routing={**alone.document()["routing"], "defaultHarness": "claude"})
    environ = program(tmp_path, "claude", 'echo "9.9.9 (Claude Code)"') | {"HOME": str(tmp_path)}

    unlogged = found(alone, "harness claude", env=environ)
    logged = found(alone, "harness claude", env={**environ, "ANTHROPIC_API_KEY": "sk-ant-of-mine"})

    assert only(unlogged, "harness claude").state is State.WARNING
    assert "newer than any that was tried" in only(unlogged, "harness claude").detail
    assert only(unlogged, "harness claude, log-in").state is State.WARNING
    assert "/login" in only(unlogged, "harness claude, log-in").remedy
    assert only(logged, "harness claude, log-in").state is State.OK
    assert "sk-ant-of-mine" not in str(logged)
    assert "that a turn took a message" in only(unlogged, "harness claude, proofs").detail


# ---------------------------------------------------------------- what is ours


def test_a_configuration_that_cannot_be_used(alone: Product) -> None:
    """Each problem is a finding with its line, and every other check is done all the same."""
    text = yaml.safe_dump({**alone.document(), "limits": {"restartsPerHour": -1}, "servise": {}})
    alone.configure(text)

    findings = found(alone, "configuration", "python", "database")

    problems = [one for one in findings if one.name == "configuration"]
    assert [one.state for one in problems] == [State.FAILED, State.FAILED]
    assert any("limits.restartsPerHour" in one.detail for one in problems)
    assert any("servise" in one.detail for one in problems)
    assert all(one.remedy for one in problems)
    assert only(findings, "database").state is State.OK


def test_files_that_others_may_read_or_change(alone: Product) -> None:
    """The configuration, the state and a file with tokens, each with the command that mends it."""
    alone.configure(channels={"slack": {"enabled": False}})
    secrets = alone.paths.chat_secrets("slack")
    alone.paths.local.mkdir(parents=True)
    secrets.write_text("THE_LOOP_SLACK_BOT_TOKEN=xoxb-of-mine\n")
    of_unit = alone.config.with_name("environment")
    of_unit.write_text("THE_LOOP_SLACK_APP_TOKEN=xapp-of-mine\n")
    for path, mode in ((alone.config, 0o666), (alone.paths.local, 0o755), (secrets, 0o644), (of_unit, 0o640)):
        path.chmod(mode)

    findings = found(alone, "permissions")

    assert {one.state for one in findings} == {State.FAILED}
    told = "\n".join(one.detail for one in findings)
    assert all(str(path) in told for path in (alone.config, alone.paths.local, secrets, of_unit))
    assert all("`chmod " in one.remedy for one in findings)
    assert "-of-mine" not in str(findings)


def test_a_damaged_database(alone: Product) -> None:
    """It is named with what to do."""
    alone.paths.local.mkdir(parents=True, mode=0o700)
    alone.paths.database.write_bytes(b"no database at all" * 100)

    finding = found(alone, "database")[-1]

    assert finding.state is State.FAILED
    assert str(alone.paths.database) in finding.detail
    assert finding.remedy


def test_no_service(alone: Product) -> None:
    """What does not work without one is said, and what starts it."""
    finding = only(found(alone, "service"), "service")

    assert finding.state is State.FAILED
    assert finding.remedy.startswith("start it: `")


def test_sessions_that_get_in_one_anothers_way(alone: Product) -> None:
    """Two in one folder are a warning, and one whose folder is missing cannot be started."""
    names = [{"name": "one"}, {"name": "two"}, {"name": "three", "cwd": str(alone.folder / "gone")}]
    alone.configure(standingSessions={"enabled": True, "sessions": names})

    findings = found(alone, "sessions")

    assert "one, two" in only(findings, "folders").detail
    assert only(findings, "folders").state is State.WARNING
    assert only(findings, "session three").state is State.FAILED


def test_a_record_that_cannot_be_read(alone: Product) -> None:
    """Its path is named; the file is left as it is."""
    alone.paths.records.mkdir(parents=True, mode=0o700)
    (alone.paths.records / f"{NAME}.json").write_text("{")

    finding = only(found(alone, "sessions"), f"session {NAME}")

    assert finding.state is State.FAILED
    assert f"{NAME}.json" in finding.detail


def test_a_locale_without_utf_8(alone: Product) -> None:
    """It is a warning: sessions are given one."""
    finding = only(found(alone, "locale", env={"LC_ALL": "C"}), "locale")

    assert (finding.state, finding.detail.split(":")[0]) == (State.WARNING, "LC_ALL=C")


# ---------------------------------------------------------------- the chat


def test_the_bot_was_removed_from_a_channel_with_threads(talking: Product) -> None:
    """The configured channel is well, another one with a thread of a session is not."""
    block = talking.slack_block(channel=talking.workspace.add_channel("quiet", ["the-loop"]))
    talking.configure(channels={"slack": block})
    talking.workspace.kick("the-loop", "agents")
    try:
        findings = found(talking, "slack: check")
    finally:
        talking.workspace.join("the-loop", "agents")
        talking.configure()

    bound = only(findings, f"slack: channel {talking.workspace.channel_id('agents')}")
    assert bound.state is State.FAILED
    assert "/invite" in bound.remedy
    assert only(findings, "slack: channel").state is State.OK


def test_a_token_that_was_revoked_and_scopes_that_are_missing(talking: Product) -> None:
    """Granted is compared with needed; the token itself is shown nowhere."""
    scopes = talking.workspace.do(lambda c: list(c.app().scopes))
    talking.workspace.set_scopes(["chat:write", "channels:read", "users:read"])
    try:
        lacking = only(found(talking, "slack: check"), "slack: scopes")
        talking.workspace.set_revoked()
        revoked = only(found(talking, "slack: check"), "slack: bot")
    finally:
        talking.workspace.set_revoked(False)
        talking.workspace.set_scopes(scopes)

    assert lacking.state is State.FAILED
    assert "reactions:write" in lacking.detail
    assert revoked.state is State.FAILED
    assert talking.workspace.bot_token not in str((lacking, revoked))


def test_a_network_that_hangs(talking: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes the connection and never answers costs its time, and is unknown."""
    monkeypatch.setattr("bot.clients.CALL_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        talking.configure(channels={"slack": talking.slack_block(apiUrl=f"http://127.0.0.1:{port}/api/")})
        try:
            findings = found(talking, "slack: check")
        finally:
            talking.configure()

    assert only(findings, "slack: bot").state is State.UNKNOWN
    assert only(findings, "slack: Socket Mode").state is State.UNKNOWN


def test_a_connection_that_brings_nothing(talking: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is connected, yet the message that was posted does not come back: it is deaf."""
    monkeypatch.setattr(chats, "_ECHO_SECONDS", 1.0)
    talking.workspace.hold_events()
    try:
        findings = found(talking, "slack: round trip", "service", live=True)
    finally:
        talking.workspace.release_events()

    assert only(findings, "slack: connection").state is State.OK
    trip = only(findings, "slack: round trip")
    assert trip.state is State.FAILED
    assert "deaf" in trip.detail


# ---------------------------------------------------------------- deadlines


def test_a_check_that_never_ends_is_left_behind() -> None:
    """What it found until then counts, and so does what the others find."""
    over = threading.Event()

    def endless() -> Iterator[Finding]:
        yield Finding("first", State.OK, "")
        over.wait()

    def quick() -> Iterator[Finding]:
        yield Finding("quick", State.OK, "")

    try:
        found = run_all([Check("endless", 0.2, endless), Check("quick", 5, quick)], SystemClock())
    finally:
        over.set()

    assert [(one.name, one.state) for one in found] == [
        ("first", State.OK),
        ("endless", State.UNKNOWN),
        ("quick", State.OK),
    ]
    assert "0.2 s" in found[1].detail


def test_the_command_itself_ends_in_time_with_a_frozen_tmux(alone: Product, tmp_path: Path) -> None:
    """Nothing that hangs keeps the process from its end; and its exit code says that not all was answered."""
    done = alone.cli("doctor", "--json", env=program(tmp_path, "tmux", "exec sleep 300"), seconds=60)

    states: dict[str, Any] = {one["name"]: one["state"] for one in done.json["findings"]}
    assert (done.code, states["tmux"], states["pasting"]) == (1, "unknown", "unknown")
    wait_until(lambda: not _sleeping(), "the programs that hung are ended")


def _sleeping() -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True, timeout=20).stdout
    return "sleep 300" in listed.splitlines()
