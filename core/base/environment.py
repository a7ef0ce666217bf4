"""The environment of a program that a session starts, and how processes of a session are recognised.

A program gets the operator's environment as it is at the start, without the variables that belong to an agent's own
pane. docs/operations.md describes this for operators. Every command that lists sessions imports this module, so it
imports nothing heavy.

Each process of an instance carries a marker: an environment variable and, on Linux, a resource limit that nothing else
uses. A program may clean its child's environment, and may leave its process tree and terminal session. Limits are
inherited all the same, and every process may read them. The limit on file locks has had no effect since Linux 2.4.25
(getrlimit(2)), so it can carry the marker. A pane that is started inside a pane gets a marker of its own.
"""

import os
import sys
from binascii import crc32
from collections.abc import Iterable, Mapping

from core.base.names import INSTANCE_VARIABLE

_OURS = "THE_LOOP_"

#: What coding agents put into the shells that they run, and nobody sets by hand: never passed on, and whoever has one
#: was started from such a shell.
_MARKERS = frozenset(
    {
        "AI_AGENT",
        "ANTIGRAVITY_AGENT",
        "AUGMENT_AGENT",
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_PID",
        "CLINE_ACTIVE",
        "CODEX_CI",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
        "COPILOT_CLI",
        "CURSOR_AGENT",
        "GEMINI_CLI",
        "OPENCODE",
        "OPENCODE_PID",
        "THE_LOOP_INSTANCE",
    }
)
#: In an agent's shell: what is the agent's own, by the beginning of its name …
_FAMILIES = ("CLAUDE_", "CODEX_", "CLINE_", "COPILOT_", "CURSOR_", "GEMINI_CLI_", "OPENCODE_", "ANTHROPIC_DEFAULT_")
#: … and by its name: the model and the manner that it was told to work with.
_CHOICES = frozenset(
    {
        "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CI",
        "COREPACK_ENABLE_AUTO_PIN",
        "FORCE_COLOR",
        "GEMINI_MODEL",
        "MAX_THINKING_TOKENS",
        "NO_COLOR",
        "NoDefaultCurrentDirectoryInExePath",
        "OPENAI_MODEL",
    }
)
#: … and what agents set so that no program waits for a person, where it has that very value.
_UNATTENDED = {"GIT_EDITOR": "true", "PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat", "MANPAGER": "cat"}
#: Of the families all the same the operator's: where the agent's programs and accounts are.
_ACCESS = frozenset(
    {
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CONFIG_DIR",
        "CODEX_API_KEY",
        "CODEX_HOME",
        "COPILOT_GITHUB_TOKEN",
        "CURSOR_API_KEY",
        "GEMINI_CLI_HOME",
        "OPENCODE_API_KEY",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
    }
)
#: What tells of the terminal, the shell or the service in which a start was asked for. The program is in none of them.
_PLACE = frozenset(
    {
        *("_", "COLORFGBG", "COLUMNS", "GPG_TTY", "LINES", "OLDPWD", "PWD", "SHLVL", "STY", "WINDOW"),
        *("TERM", "TERMCAP", "TERMINAL_EMULATOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID"),
        *("TMUX", "TMUX_PANE", "VTE_VERSION", "WINDOWID", "WT_PROFILE_ID", "WT_SESSION"),
        *("CLAUDE_CODE_SSE_PORT", "ENABLE_IDE_INTEGRATION", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"),
        *("INVOCATION_ID", "JOURNAL_STREAM", "MANAGERPID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE"),
        *("LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID", "WATCHDOG_PID"),
        "WATCHDOG_USEC",
    }
)
#: What make tells the commands of a recipe. Where no recipe runs, MAKEFLAGS is somebody's wish for every make.
_RECIPE = "MAKELEVEL"
_MAKES = frozenset({"MAKEFLAGS", _RECIPE, "MAKEOVERRIDES", "MAKE_TERMERR", "MAKE_TERMOUT", "MFLAGS"})
#: What a shell keeps for itself, and dies of where somebody sets it.
_SHELLS = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "GROUPS", "PPID", "SHELLOPTS", "UID"})
_PLACES = ("ALACRITTY_", "GHOSTTY_", "ITERM_", "KITTY_", "KONSOLE_", "LC_TERMINAL", "VSCODE_", "WEZTERM_", "ZELLIJ")
#: What is another with each login, by nobody's wish: passed on, and no difference that anybody is told of.
_BY_LOGIN = frozenset(
    {
        *("COLORTERM", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "SSH_AGENT_PID", "SSH_AUTH_SOCK", "WAYLAND_DISPLAY"),
        *("XAUTHORITY", "XDG_SEAT", "XDG_SESSION_CLASS", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_VTNR"),
    }
)
#: What a tmux server of ours is started with: it lives for months, and no program gets its environment from it.
_SERVER = frozenset(
    {
        *("DBUS_SESSION_BUS_ADDRESS", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TERMINFO"),
        *("TERMINFO_DIRS", "TMPDIR", "TMUX_TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR"),
    }
)


def chosen(environ: Mapping[str, str], without: Iterable[str] = ()) -> dict[str, str]:
    """Return what a program started now is given of this environment; `without` are the names of our own secrets.

    A name that a shell cannot set is left out, and a UTF-8 locale is made sure of.
    """
    dropped = {*without, *_MARKERS, *_PLACE, *_SHELLS, *(_MAKES if _RECIPE in environ else ())}
    kept = {name: value for name, value in environ.items() if name not in dropped and _passes(name)}
    if is_agents(environ):
        kept = {name: value for name, value in kept.items() if not _of_an_agent(name, value)}
    return with_utf8(kept)


def absolute_entries(path: str) -> str:
    """Return a value of PATH without the entries that name other programs in each folder: `bin`, `.`, an empty one.

    A cloned repository could bring along a program of a name that we or an agent call.
    """
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a tmux server of our own is started with."""
    return {name: value for name, value in environ.items() if name in _SERVER or name.startswith("LC_")}


def with_utf8(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with a UTF-8 locale: programs write `_` for what is not ASCII in any other."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    return dict(environ) if "utf" in locale.lower() else {**environ, "LC_ALL": "C.UTF-8"}


def is_agents(environ: Mapping[str, str]) -> bool:
    """Return whether the environment is that of a shell which a coding agent runs."""
    return not _MARKERS.isdisjoint(environ)


def fingerprints(given: Mapping[str, str]) -> dict[str, str]:
    """Return by name what tells whether a variable has another value, and nothing else of the value.

    Sixteen bits: one change in 65,536 goes unnoticed, and no value can be found by them.
    """
    return {name: f"{crc32(os.fsencode(value)) & 0xFFFF:04x}" for name, value in sorted(given.items())}


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables whose fingerprints differ, are missing or are new."""
    names = {*before, *now} - _BY_LOGIN
    return tuple(sorted(name for name in names if before.get(name) != now.get(name)))


def _passes(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith((_OURS, *_PLACES))


def _of_an_agent(name: str, value: str) -> bool:
    if name in _ACCESS:
        return False
    return name in _CHOICES or name.startswith(_FAMILIES) or _UNATTENDED.get(name) == value


MARKER = INSTANCE_VARIABLE

_LOCKS = 10  # RLIMIT_LOCKS, which the module resource has no name for
_LEAST = 1 << 61  # no number that anybody would set; all that follow have 19 digits


def limit_of(instance: str) -> int:
    """Return the soft limit on file locks that processes of that instance carry."""
    import hashlib

    return _LEAST + (int.from_bytes(hashlib.sha256(instance.encode()).digest()[:8], "big") >> 3)


def shed_limit() -> None:
    """Give the limit up in this process, before it starts what belongs to no instance, whoever started it."""
    if sys.platform != "linux":
        return
    import resource

    soft, hard = resource.getrlimit(_LOCKS)
    if soft != hard:
        resource.setrlimit(_LOCKS, (hard, hard))
