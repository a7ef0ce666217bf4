"""Whether a program is logged in, as far as its files and variables tell. No value of theirs is looked at or kept.

Where a log-in is kept: Claude Code in `.credentials.json` of its folder, on macOS in the keychain; Codex in `auth.json`
of $CODEX_HOME, or in the system's keyring if it is told so; OpenCode in `auth.json` of its data folder; Gemini CLI by
what its settings select. Each takes keys from variables, too.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from core.base.errors import InvalidValue
from core.base.paths import home, xdg
from core.base.values import dataclass


@dataclass(frozen=True)
class Login:
    """What is known of a program's log-in. `found` None: it cannot be told from here."""

    found: bool | None
    detail: str
    remedy: str = ""


def login_of(harness: str, environ: Mapping[str, str]) -> Login | None:
    """Return what is known of it; None for a program of which nothing is known, or that needs none."""
    look = _LOOKS.get(harness)
    return None if look is None else look(environ)


def _claude(environ: Mapping[str, str]) -> Login:
    given = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(given) if given else home(environ) / ".claude"
    variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    clouds = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
    remedy = "run `claude`, and `/login`"
    if sys.platform == "darwin" and not _set(environ, (*variables, *clouds)):
        return Login(None, "it may be in the keychain, which only Claude Code asks", remedy)
    return _by(environ, (*variables, *clouds), (folder / ".credentials.json",), remedy)


def _codex(environ: Mapping[str, str]) -> Login:
    given = environ.get("CODEX_HOME")
    folder = Path(given) if given else home(environ) / ".codex"
    return _by(environ, ("OPENAI_API_KEY", "CODEX_API_KEY"), (folder / "auth.json",), "run `codex login`")


def _opencode(environ: Mapping[str, str]) -> Login:
    file = xdg(environ, "XDG_DATA_HOME", ".local/share") / "opencode" / "auth.json"
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY")
    return _by(environ, keys, (file,), "run `opencode auth login`")


def _gemini(environ: Mapping[str, str]) -> Login:
    from core.harness.gemini.home import login_missing, person_of

    try:
        missing = login_missing(person_of(environ), environ, None)
    except InvalidValue as error:
        return Login(None, error.message, error.remedy)
    if missing:
        return Login(False, "neither its settings nor a variable say how it logs in", "run `gemini` once and choose")
    return Login(True, "its settings or a variable say how it logs in")


def _by(environ: Mapping[str, str], variables: Iterable[str], files: tuple[Path, ...], remedy: str) -> Login:
    named = _set(environ, variables)
    if named:
        return Login(True, f"by {named}")
    for file in files:
        try:
            if file.stat().st_size:
                return Login(True, f"by {file}")
        except OSError:
            continue
    where = ", ".join(map(str, files))
    return Login(False, f"none was found: {where} is not there, and no variable holds a key", remedy)


def _set(environ: Mapping[str, str], variables: Iterable[str]) -> str:
    return next((name for name in variables if environ.get(name)), "")


_LOOKS: Mapping[str, Callable[[Mapping[str, str]], Login]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}
