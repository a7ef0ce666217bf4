"""Run the whole product in one folder: a Slack-compatible workspace on loopback, the service, one session.

A demonstration starts what its folder holds. So that folder is never where a repository could write: it is among the
user's own state, whatever the folder is in which `the-loop demo` is typed.
"""

import json
import logging
import os
import socket
import subprocess
import sys
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import yaml

from core.base.clock import Deadline, SystemClock
from core.base.errors import CoreError, Refused
from core.base.files import own_folder, write_private
from core.base.names import check_name, target_for
from core.base.paths import StatePaths, default_state_root, locate
from core.config.loading import FILE, HEADER, state_root
from core.lifecycle.look import get_standing
from core.model.rows import Row
from core.model.session import Hold, HoldKind, Live
from core.process.itself import close_process
from core.process.presence import running_service
from core.session.commands import command_line

DEMO_SESSION = "guide"
DEMO_PERSON = "you"
DEMO_CHANNEL = "agents"
DEMO_SOCKET = "the-loop-demo"


def last_socket(folder: Path) -> str:
    """Return the name of the tmux server that the folder's demo used last, or the usual one."""
    try:
        last = yaml.safe_load((folder / FILE).read_text())["routing"]["tmux"]["socketName"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return DEMO_SOCKET  # there was no demo here, or its file is no longer ours
    return last if isinstance(last, str) and last.startswith(DEMO_SOCKET) else DEMO_SOCKET


def own_socket(folder: Path) -> str:
    """Return a name that the demo of no other folder uses."""
    return f"{DEMO_SOCKET}-{crc32(os.fsencode(folder)):08x}"


def write_configuration(
    folder: Path, facts: Mapping[str, Any], socket: str, own: Mapping[str, Any] | None = None
) -> Path:
    """Write the demo's configuration for a workspace with these facts, and return its path.

    `own`: the resolved form of one whose harnesses, sessions and limits are to be tried in the demo.
    """
    work = folder / "work"
    work.mkdir(mode=0o700, exist_ok=True)
    document = {
        "state": {"root": str(state_root(folder))},
        "routing": {
            "defaultHarness": "bundled",
            "spawnWorkdir": str(work),
            "tmux": {"socketName": socket},
        },
        "service": {"port": 0},
        "channels": {
            "slack": {
                "enabled": True,
                "apiUrl": facts["api_url"],
                "channel": facts["channels"][DEMO_CHANNEL],
                "authorizedUsers": [facts["users"][DEMO_PERSON]],
                "operators": [facts["users"][DEMO_PERSON]],
            }
        },
        "standingSessions": {
            "enabled": True,
            "sessions": [
                {
                    "name": DEMO_SESSION,
                    "description": "the bundled agent",
                    "prompt": "Say that you are ready, and how to learn what you can do.",
                    "slack": {"enabled": True},
                }
            ],
        },
    }
    header = HEADER
    if own is not None:
        document = _joined(document, own)
        header += "# Exception: what comes from the file that --config named.\n"
    config = folder / FILE
    write_private(config, (header + yaml.safe_dump(document, sort_keys=False)).encode())
    return config


#: What a file may say of the chat that names nobody and nothing in a real workspace.
_OF_THE_CHAT = ("verbosity", "confirmOlderThanMinutes", "asidePrefix")


def _joined(demo: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the own configuration, with the demo's state, tmux server, chat and address.

    So nothing of it meets the sessions that the same file makes elsewhere. Each of its sessions has a thread.
    """
    [guide] = demo["standingSessions"]["sessions"]
    sessions = [
        {**{key: value for key, value in one.items() if key not in theirs["channels"]}, "slack": {"enabled": True}}
        for one in theirs["standingSessions"]["sessions"]
    ]
    homely = {"harness": "bundled", "cwd": demo["routing"]["spawnWorkdir"]}
    guides = [] if any(one["name"] == DEMO_SESSION for one in sessions) else [{**guide, **homely}]
    tmux = {**theirs["routing"]["tmux"], "socketName": demo["routing"]["tmux"]["socketName"]}
    chat = theirs["channels"].get("slack", {})
    kept = {key: chat[key] for key in _OF_THE_CHAT if key in chat}
    return {
        **theirs,
        "state": demo["state"],
        "routing": {**theirs["routing"], "tmux": tmux},
        "service": demo["service"],
        "channels": {"slack": {**kept, **demo["channels"]["slack"]}},
        "standingSessions": {"enabled": True, "sessions": [*guides, *sessions]},
    }


def folder_of(name: str, environ: Mapping[str, str]) -> Path:
    """Return where the demo of that name keeps all it has. Raises InvalidValue for what is no name."""
    check_name(name, "demo")
    return default_state_root(environ) / "demos" / name


_LOG = logging.getLogger(__name__)
_FACTS = "workspace.json"
_OURS = "THE_LOOP_"  #: begins the names of what is none of a chat's business
_WORKSPACE_SECONDS = 20.0
_END_SECONDS = 5.0
_PAGE_SECONDS = 5.0


class WorkspaceNotStarted(CoreError):
    """The loopback workspace did not come up."""

    code = "workspace_not_started"


def run_demo(
    name: str,
    port: int,
    environ: Mapping[str, str],
    tell: Callable[[Mapping[str, Any]], None],
    tell_end: Callable[[str], None],
    own: Path | None = None,
) -> int:
    """Bring up the demo of that name, tell how to address it (see `addressed`), and serve until interrupted.

    `own`: a configuration that is tried in it. At the end it tells what ended it, and what lives on; before, that a
    service without a page gave way to it. Raises InvalidValue, ConfigError, Refused if it runs already,
    WorkspaceNotStarted, StoreBroken where its folder cannot be made.
    """
    from core.config.loading import load
    from core.service.assembly import build_service

    close_process()
    folder = folder_of(name, environ)
    theirs = _read(own, environ) if own is not None else None
    own_folder(folder.parent)
    own_folder(folder)
    _make_way(folder, environ, tell_end)
    with _workspace(folder, port) as facts:
        tokens = {"THE_LOOP_SLACK_BOT_TOKEN": facts["bot_token"], "THE_LOOP_SLACK_APP_TOKEN": facts["app_token"]}
        demo_environ = {**_without_proxies(environ), **tokens}
        config = _configured(folder, facts, demo_environ, theirs)
        hold = _guide(config, demo_environ).hold
        service = build_service(load(config, demo_environ), demo_environ)
        code = service.run(ready=lambda: tell(addressed(config, facts, environ, hold)))
    tell_end(farewell(service.signal, command_line(config, environ, "stop"), _left(config, demo_environ)))
    return code


def _left(config: Path, environ: Mapping[str, str]) -> Live:
    """Return what is left of the demo's session; where its folder is gone nobody can tell."""
    try:
        return _guide(config, environ).live
    except CoreError as error:
        _LOG.warning("not known what is left of the demo", extra={"reason": str(error)})
        return Live.UNKNOWN


def _make_way(folder: Path, environ: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """End a service of this folder that has no page. Raises Refused where a demo runs, or the service stays."""
    pid = running_service(StatePaths(state_root(folder)).service_lock)
    if pid is None:
        return
    page = _fact(folder / _FACTS, "page_url")
    if _answers(page):
        raise Refused(
            f"a demo runs in {folder} already (pid {pid}): {page}",
            "open its page, or end it with Ctrl-C, or give another name with --name",
        )
    from core.config.loading import load_tolerant
    from core.service.hosting import end_service
    from core.service.wiring import build_system

    settings, _ = load_tolerant(folder / FILE, environ)
    system = build_system(settings._replace(state_root=state_root(folder)), environ)
    try:
        end_service(system)
    finally:
        system.close()
    if running_service(StatePaths(state_root(folder)).service_lock) is not None:
        raise Refused(
            f"a service without a page runs in {folder} (pid {pid}), and does not end",
            f"end it with `kill -KILL {pid}`, then try again; the session lives on in tmux",
        )
    tell(f"There was a service without a page in {folder} (pid {pid}). It was ended; its session goes on here.")


def _answers(page: str) -> bool:
    """Return whether the page is served: by this folder's workspace, which alone knows the key in its address."""
    if not page:
        return False
    direct = build_opener(ProxyHandler({}))
    try:
        with direct.open(page, timeout=_PAGE_SECONDS) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (OSError, ValueError, HTTPException):  # refused, silent, another program on that port, or no address
        return False


def _read(own: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the resolved form of a configuration: every key, paths absolute. Raises ConfigError."""
    from core.config.loading import read_text
    from core.config.validation import validate

    location = locate(own, environ)
    return validate(read_text(location) or "", location.path, environ)


def _configured(
    folder: Path, facts: Mapping[str, Any], environ: Mapping[str, str], own: Mapping[str, Any] | None
) -> Path:
    """Write the configuration; where another folder's demo has our tmux session's name, with a server of our own."""
    config = write_configuration(folder, facts, last_socket(folder), own)
    if _guide(config, environ).live is Live.FOREIGN:
        config = write_configuration(folder, facts, own_socket(folder), own)
    return config


def _guide(config: Path, environ: Mapping[str, str]) -> Row:
    """Return how the demo's session stands."""
    from core.config.loading import load
    from core.service.wiring import build_system

    system = build_system(load(config, environ), environ)
    try:
        return get_standing(system, DEMO_SESSION)
    finally:
        system.close()


def _without_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Slack's client takes a proxy from the environment even for loopback; the demo has no network to reach it by."""
    return {key: value for key, value in environ.items() if key.lower() not in {"http_proxy", "https_proxy"}}


def addressed(
    config: Path, facts: Mapping[str, Any], environ: Mapping[str, str], hold: Hold | None = None
) -> dict[str, Any]:
    """Return where everything is, and the commands that address it, each as it can be typed.

    `hold` is what keeps the session down, or its turns back.
    """
    program = command_line(config, environ)
    return {
        "folder": str(config.parent),
        "page": facts["page_url"],
        "channel": DEMO_CHANNEL,
        "session": DEMO_SESSION,
        "tmuxTarget": target_for(DEMO_SESSION),
        "held": f"{hold.kind.value} by {hold.by}" if hold else "",
        "commands": {
            "attach": f"{program} standing attach {DEMO_SESSION}",
            "say": f"{program} standing say {DEMO_SESSION} --text 'hello'",
            "status": f"{program} status",
            "events": f"{program} events",
            "stop": f"{program} stop",
            "start": f"{program} standing {_release(hold)} {DEMO_SESSION}",
            "create": f"{program} standing create mine --harness claude --slack",
        },
    }


def _release(hold: Hold | None) -> str:
    return "resume" if hold is not None and hold.kind is HoldKind.PAUSED else "start"


def explained(address: Mapping[str, Any]) -> str:
    """Return the same for people."""
    commands = address["commands"]
    held = f"\n  {address['session']} is {address['held']}; let it go on:\n                 {commands['start']}\n"
    return f"""
the-loop runs, with everything it has in {address["folder"]}

  the thread     {address["page"]}
                 (channel #{address["channel"]}: open the announcement and reply to it)
  the pane       {commands["attach"]}
  speak to it    {commands["say"]}
  is it up?      {commands["status"]}
  what happened  {commands["events"]}
  another agent  {commands["create"]}
  end it all     {commands["stop"]}   (the next `make run` resumes the conversation)
{held if address["held"] else ""}
Ctrl-C ends the service and the page; the session lives on in tmux ({address["tmuxTarget"]}) until it is stopped.
"""


def farewell(ended_by: str | None, stop: str, live: Live) -> str:
    """Return what ended the demo, the signal's name or None for a failure, and what is left of it."""
    why = {"SIGINT": "Ctrl-C was pressed", "SIGTERM": "it was told to stop"}.get(ended_by or "", "a part of it failed")
    if live is Live.UNKNOWN:
        left = f"It is not known whether the session `{DEMO_SESSION}` lives on in tmux ({target_for(DEMO_SESSION)})."
    elif live is Live.LIVE:
        left = (
            f"The session `{DEMO_SESSION}` lives on in tmux ({target_for(DEMO_SESSION)}): the next `make run` goes on "
            f"with it, and `{stop}` ends it."
        )
    else:
        left = f"The session `{DEMO_SESSION}` does not run any more; its conversation is kept for the next `make run`."
    return f"The demo has ended, page and service: {why}. {left}"


@contextmanager
def _workspace(folder: Path, port: int) -> Iterator[Mapping[str, Any]]:
    """Run the workspace as a process of its own and give its facts: url, api_url, tokens, channel, user ids.

    It ends with us, however we end: it reads a pipe that nobody else holds open.
    """
    facts_file, log = folder / _FACTS, folder / "workspace.log"
    parent, ours = os.pipe()
    try:
        process = _started(folder, facts_file, log, _freed(port or _last_port(facts_file)), parent)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(parent)
    try:
        yield _facts(process, facts_file, log)
    finally:
        os.close(ours)
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(folder: Path, facts_file: Path, log: Path, port: int, parent: int) -> "subprocess.Popen[bytes]":
    facts_file.unlink(missing_ok=True)
    argv = [sys.executable, "-I", "-m", "embedded.workspace", "--db", str(folder / "workspace.db"), "--port", str(port)]
    argv += ["--tokens-file", str(facts_file), "--parent-fd", str(parent)]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        os.fchmod(descriptor, 0o600)  # one that an earlier version made may be open to others
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
            cwd="/",
            start_new_session=True,
            pass_fds=(parent,),
        )


def _last_port(facts_file: Path) -> int:
    """Return the port of the last run, so that an open page finds its way back; 0 (any) where there was none."""
    try:
        return urlsplit(_fact(facts_file, "url")).port or 0
    except ValueError:
        return 0


def _fact(facts_file: Path, key: str) -> str:
    """Return what the last workspace, or the one that runs, has told of itself; "" where it has told nothing."""
    try:
        return str(json.loads(facts_file.read_text())[key])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _freed(port: int) -> int:
    """Return the port if nobody listens on it, else 0: another demo has it.

    The page of a demo that was killed leaves it in a moment, which is waited for.
    """
    clock = SystemClock()
    deadline = Deadline(clock, _END_SECONDS)
    while not _is_free(port):
        if deadline.passed():
            return 0
        clock.pause(0.1)
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _facts(process: "subprocess.Popen[bytes]", file: Path, log: Path) -> Mapping[str, Any]:
    clock = SystemClock()
    deadline = Deadline(clock, _WORKSPACE_SECONDS)
    while not deadline.passed() and process.poll() is None:
        if file.exists():
            facts: Mapping[str, Any] = json.loads(file.read_text())
            return facts
        clock.pause(0.05)
    raise WorkspaceNotStarted("the demo's workspace did not come up", f"its last output is in {log}")
