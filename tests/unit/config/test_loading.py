"""The file becomes settings, or one error with everything that is wrong with it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import CoreError
from core.config.document import MAX_DEPTH, ConfigError
from core.config.loading import demo_folder, load, load_tolerant
from core.config.settings import ChannelBlock, HarnessDeclaration, Routing, ServiceSettings, Settings
from core.config.validation import validate
from core.model.session import ChatBinding, Definition, Idle, Restart
from tests.unit.config.conftest import ConfigFolder


def test_no_file_means_every_default(folder: ConfigFolder) -> None:
    """Where nobody named a file and the default one is not there, all keys have their defaults."""
    found = load(None, folder.env)

    assert found == Settings(
        folder.home / ".local/state/the-loop", routing=Routing(spawn_workdir=str(folder.home)), source=None
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n", "routing:\nharnesses:\nchannels:\nlimits:\n"])
def test_an_empty_file_means_the_same_as_none(folder: ConfigFolder, text: str) -> None:
    """A file without keys, or with sections whose lines are all comments, changes nothing."""
    found = folder.load(text)

    assert found.state_root == load(None, folder.env).state_root
    assert found.routing == load(None, folder.env).routing
    assert found.source == folder.path


def test_every_key_reaches_the_settings(folder: ConfigFolder) -> None:
    """Each key of the file is found again in the settings, paths made absolute."""
    found = folder.load(
        """
        state: {root: state}
        routing:
          defaultHarness: mine
          harnessArgs: {claude: [--model, opus], mine: [-r]}
          spawnWorkdir: ~/work
          harnessTrust: {enabled: false, acceptBypassPermissions: never, permissionMode: acceptEdits}
          tmux: {socketName: other, harnessKillGraceSeconds: 1, resumeProbeSeconds: 0.5, startTimeoutSeconds: 60,
                 resumeOnRespawn: false, remainOnExit: false, commandTimeoutSeconds: 2}
        harnesses:
          mine: {start: [prog, --id, "{id}"], resume: [prog, --again, "{id}"], ready: "> $", paste: plain,
                 submit: enter, settleMs: 0, clear: C-a C-k}
        channels: {slack: {enabled: true, channel: C012, anything: [1, {a: b}]}}
        standingSessions:
          enabled: true
          sessions:
            - {name: scribe, description: Notes, harness: claude, harnessArgs: [], cwd: ../notes, promptFile: brief.md,
               autoStart: false, slack: {enabled: true, channel: C9XY}, restart: on-failure, idle: {stopAfter: 1h30m}}
            - {name: other, prompt: "hello"}
        limits: {queuedPerSession: 3, messageExpiryMinutes: 1.5, restartsPerHour: 2}
        eventLog: {maxBytes: 5000, keep: 0, includeText: true}
        service: {host: "::1", port: 0, tokenEnv: MY_TOKEN}
        """
    )

    etc = folder.path.parent
    assert found.state_root == etc / "state"
    assert found.routing.harness_args == {"claude": ("--model", "opus"), "mine": ("-r",)}
    assert found.routing.spawn_workdir == str(folder.home / "work")
    assert found.routing.harness_trust.accept_bypass_permissions == "never"
    assert found.routing.harness_trust.permission_mode == "acceptEdits"
    assert found.routing.tmux.socket_name == "other"
    assert found.routing.tmux.harness_kill_grace_seconds == 1
    assert not found.routing.tmux.remain_on_exit
    assert found.harnesses == {
        "mine": HarnessDeclaration(
            "mine", ("prog", "--id", "{id}"), ("prog", "--again", "{id}"), "> $", "plain", "enter", 0, b"\x01\x0b"
        )
    }
    assert found.channel("slack") == ChannelBlock(
        "slack", True, {"enabled": True, "channel": "C012", "anything": [1, {"a": "b"}]}
    )
    assert found.channel("other") == ChannelBlock("other", False, {})
    assert found.standing.enabled
    assert found.standing.get("scribe") == Definition(
        "scribe", "Notes", "claude", (), str(etc / "../notes"), None, str(etc / "brief.md"), False,
        {"slack": ChatBinding(True, "C9XY")}, Restart.ON_FAILURE, Idle(timedelta(minutes=90)),
    )  # fmt: skip
    assert found.standing.get("other") == Definition("other", prompt="hello")
    assert found.standing.get("nobody") is None
    assert (found.limits.queued_per_session, found.limits.message_expiry_minutes) == (3, 1.5)
    assert found.limits.restarts_per_hour == 2
    assert (found.event_log.max_bytes, found.event_log.keep, found.event_log.include_text) == (5000, 0, True)
    assert found.service == ServiceSettings("::1", 0, "MY_TOKEN")


def test_all_problems_come_at_once_in_the_order_of_the_file(folder: ConfigFolder) -> None:
    """A file with several faults is refused once, naming file, line, key, what was found and what is allowed."""
    folder.write(
        """\
        state: {root: 5}
        routing:
          tmux:
            commandTimeoutSeconds: "3"
        standingSessions:
          sessions:
            - name: Bad Name
            - description: nameless
        eventLog: seven
        """
    )

    with pytest.raises(ConfigError) as caught:
        load(folder.path, folder.env)

    assert [(p.line, p.key) for p in caught.value.problems] == [
        (1, "state.root"),
        (4, "routing.tmux.commandTimeoutSeconds"),
        (7, "standingSessions.sessions[0].name"),
        (8, "standingSessions.sessions[1]"),
        (9, "eventLog"),
    ]
    first = caught.value.problems[0]
    assert (first.file, first.found, first.allowed) == (str(folder.path), "5 (a number)", "text")
    assert f"{folder.path}:1: state.root: found 5 (a number); allowed: text; " in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, CoreError)
    assert caught.value.code == "config_invalid"


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("routing: {defaultHarnes: claude}", "routing.defaultHarnes", "`defaultHarness`"),
        ("routing: {tmux: {socket_name: a}}", "routing.tmux.socket_name", "`socketName`"),
        ("standing-sessions: {}", "standing-sessions", "`standingSessions`"),
        ("socketName: a", "socketName", "`routing.tmux`"),
        ("zzz: 1", "zzz", "remove it"),
        ("loop: {minInterval: 30s}", "loop", "`loops`"),
        ("harnesses: {a: {start: [x], setleMs: 1}}", "harnesses.a.setleMs", "`settleMs`"),
        ("standingSessions: {sessions: [{name: a, promptfile: x}]}", "standingSessions.sessions[0].promptfile",
         "`promptFile`"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_with_the_nearest_one(folder: ConfigFolder, text: str, key: str, hint: str) -> None:
    """A misspelt key never passes silently; the remedy names the one that was probably meant."""
    found = folder.problems(text)

    assert "unknown key" in found[key].found
    assert hint in found[key].remedy


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("routing: {tmux: {socketName: a/b}}", "routing.tmux.socketName", "letters, digits"),
        ("routing: {tmux: {socketName: ..}}", "routing.tmux.socketName", "letters, digits"),
        ("routing: {tmux: {commandTimeoutSeconds: 1.9}}", "routing.tmux.commandTimeoutSeconds", "a number not below 2"),
        ("routing: {tmux: {startTimeoutSeconds: 0}}", "routing.tmux.startTimeoutSeconds", "above 0"),
        ("routing: {tmux: {commandTimeoutSeconds: 61}}", "routing.tmux.commandTimeoutSeconds", "not above 60"),
        ("routing: {tmux: {remainOnExit: 1}}", "routing.tmux.remainOnExit", "true or false"),
        ("routing: {harnessTrust: {acceptBypassPermissions: maybe}}", "routing.harnessTrust.acceptBypassPermissions",
         "auto, always or never"),
        ("routing: {harnessTrust: {permissionMode: manual}}", "routing.harnessTrust.permissionMode",
         "default, acceptEdits, plan, auto, dontAsk, bypassPermissions or harness"),
        ("routing: {harnessArgs: {claude: --model}}", "routing.harnessArgs.claude", "a list"),
        ("routing: {harnessArgs: {claude: [1]}}", "routing.harnessArgs.claude[0]", "text"),
        ("routing: [1]", "routing", "a mapping"),
        ("standingSessions: {sessions: {a: b}}", "standingSessions.sessions", "a list"),
        ("standingSessions: {sessions: [{name: no}]}", "standingSessions.sessions[0].name", "text"),
        ("standingSessions: {sessions: [{name: a, slack: {channel: '#general'}}]}",
         "standingSessions.sessions[0].slack.channel", "not its #name"),
        ("standingSessions: {sessions: [{name: a, promptFile: ''}]}", "standingSessions.sessions[0].promptFile",
         "not empty"),
        ("harnesses: {a: {start: []}}", "harnesses.a.start", "not empty"),
        ("harnesses: {a: {start: [x], ready: '('}}", "harnesses.a.ready", "a regular expression"),
        ("harnesses: {a: {start: [x], clear: Hyper-q}}", "harnesses.a.clear", "C-a to C-z"),
        ("harnesses: {a: {start: [x], settleMs: 1.5}}", "harnesses.a.settleMs", "a whole number"),
        ("limits: {queuedPerSession: 0}", "limits.queuedPerSession", "not below 1"),
        ("eventLog: {maxBytes: .inf}", "eventLog.maxBytes", "finite numbers"),
        ("state: {root: '~nobody-of-that-name/x'}", "state.root", "~user for users of this machine"),
        ("channels: {slack: {enabled: 'yes'}}", "channels.slack.enabled", "true or false"),
        ("service: {host: 'http://here'}", "service.host", "without brackets"),
        ("service: {host: '[::1]'}", "service.host", "without brackets"),
        ("limits: {restartsPerHour: 0}", "limits.restartsPerHour", "not below 1"),
        ("standingSessions: {sessions: [{name: a, restart: always}]}",
         "standingSessions.sessions[0].restart", "on-failure"),
        ("standingSessions: {sessions: [{name: a, idle: {stopAfter: 1y}}]}",
         "standingSessions.sessions[0].idle.stopAfter", "such as 30s"),
        ("standingSessions: {sessions: [{name: a, idle: {stopAfter: 0s}}]}",
         "standingSessions.sessions[0].idle.stopAfter", "such as 30s"),
        ("service: {port: 65536}", "service.port", "not above 65535"),
        ("service: {tokenEnv: 'a b'}", "service.tokenEnv", "never the token itself"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_allowed_is_refused_by_its_key(
    folder: ConfigFolder, text: str, key: str, allowed: str
) -> None:
    """Each bound and type of the schema is told by key path, and what is allowed is said in words."""
    found = folder.problems(text)

    assert list(found) == [key]
    assert allowed in found[key].allowed


def test_a_token_in_the_file_is_never_shown(folder: ConfigFolder) -> None:
    """Somebody who pastes a token where it does not belong does not find it in an error message."""
    token = "xoxb-" + "1234-secret"

    found = folder.problems(f"routing: {{tmux: {{socketName: {token}/}}}}\n{token}: 1\nstate: {token}")

    assert "secret" not in "\n".join(str(problem) for problem in found.values())
    assert "not shown" in found["routing.tmux.socketName"].found
    assert "not shown" in found["state"].found


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: path.unlink(missing_ok=True), "no such file"),
        (lambda path: path.mkdir(), "found a folder"),
        (lambda path: path.write_bytes(b"state: \xff\xfe"), "not UTF-8"),
    ],
)
def test_a_named_file_that_cannot_be_read_is_an_error_with_path_and_reason(
    folder: ConfigFolder, make: object, found: str
) -> None:
    """A file that somebody named is never taken for "no configuration"."""
    assert callable(make)
    make(folder.path)

    with pytest.raises(ConfigError) as caught:
        load(folder.path, folder.env)

    assert found in str(caught.value)
    assert str(folder.path) in str(caught.value)


def test_a_default_file_that_cannot_be_read_is_an_error_too(folder: ConfigFolder) -> None:
    """Only an absent default file means defaults; a broken one is said."""
    (folder.home / ".config/the-loop/cli-config.yaml").mkdir(parents=True)

    with pytest.raises(ConfigError, match="found a folder"):
        load(None, folder.env)


def test_a_byte_order_mark_is_no_character_of_the_file(folder: ConfigFolder) -> None:
    """Editors that write a BOM do not break the first key."""
    folder.path.write_bytes(b"\xef\xbb\xbfeventLog: {keep: 2}\n")

    found = load(folder.path, folder.env)

    assert found.event_log.keep == 2


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_KEYS = st.sampled_from(
    ["routing", "tmux", "harnesses", "start", "resume", "standingSessions", "sessions", "name", "slack", "channels",
     "harnessArgs", "claude", "prompt", "promptFile", "cwd", "state", "root", "harness", "enabled", "clear", "ready"]
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)


def _survives(text: str, path: Path) -> None:
    with contextlib.suppress(ConfigError):
        validate(text, path, {"HOME": "/home/somebody"})


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_VALUES)
def test_no_value_leads_to_anything_but_problems(value: object) -> None:
    """Whatever shape the values have, the answer is settings or a ConfigError."""
    text = yaml.safe_dump(value, allow_unicode=True)

    _survives(text, Path("/etc/x.yaml"))


_BITS = "a|- |: |\n|  |{|}|[|]|&x |*x|<<: |!!int |!x |>|'|\"|\\U|FFFFFFFF|---\n|...|%YAML 1.|?|#|\t|,|0x|1:2|\x00"
_LINES = ("|", "9" * 50, "routing:\n", "standingSessions:\n", "  sessions:\n", "    - name: a\n")
_YAML_BITS = st.lists(st.sampled_from([*_BITS.split("|"), *_LINES]), max_size=30).map("".join)


@settings(max_examples=500, deadline=None)
@given(_YAML_BITS | st.text())
def test_no_text_leads_to_anything_but_problems(text: str) -> None:
    """Whatever text stands in the file, YAML or not, the answer is settings or a ConfigError."""
    _survives(text, Path("/etc/x.yaml"))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth_without_end_is_refused_not_a_crash(folder: ConfigFolder, opening: str) -> None:
    """Ten thousand brackets do not exhaust the stack."""
    found = folder.problems(opening * 10_000)

    assert str(MAX_DEPTH) in found[""].found


def test_a_folder_is_told_from_a_file_without_permission(folder: ConfigFolder) -> None:
    """Rights would not make a file of it."""
    with pytest.raises(ConfigError) as caught:
        load(folder.root, folder.env)

    [problem] = caught.value.problems
    assert (problem.found, problem.remedy) == ("a folder", f"name the file, such as {folder.root}/cli-config.yaml")


@pytest.mark.timeout(30)
def test_a_file_that_is_none_is_waited_for_by_nobody(tmp_path: Path) -> None:
    """A FIFO in its place is named as what it is; also by `stop`, which works with what it can read."""
    path = tmp_path / "cli-config.yaml"
    os.mkfifo(path)

    with pytest.raises(ConfigError, match="no plain file"):
        load(path, {"HOME": str(tmp_path)})
    found, problem = load_tolerant(path, {"HOME": str(tmp_path)})

    assert problem is not None
    assert demo_folder(found._replace(source=path, state_root=tmp_path / "state")) is None


def test_a_service_has_the_file_validated_by_another_process(folder: ConfigFolder) -> None:
    """It keeps no validator; a file that is wrong is told as ever."""
    folder.write("limits: {queuedPerSession: 7}\n")
    program = (
        "import os, sys; from pathlib import Path; from core.config.loading import load_apart\n"
        "print(load_apart(Path(sys.argv[1]), os.environ).limits.queued_per_session, 'pydantic' in sys.modules)"
    )

    def told() -> str:
        run = [sys.executable, "-c", program, str(folder.path)]
        done = subprocess.run(run, env={**os.environ, **folder.env}, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    assert told() == "7 False\n"
    folder.write("limits: {queuedPerSession: none}\n")
    assert "limits.queuedPerSession" in told()
