"""What `the-loop config check|show|schema|init|path` do, without a terminal: values in, values out.

It holds the file that `the-loop config init` writes: the keys that people change first, each explained in a comment.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from core.base.errors import Refused
from core.base.paths import Location, locate
from core.config.channels import blocks_of, channel_problems, thread_models, unknown_channel
from core.config.chats import chat_info, installed_kinds
from core.config.document import ConfigError, Problem, in_order
from core.config.loading import load, read_text
from core.config.schema import with_chats
from core.config.validation import validate

_STARTER = """\
# the-loop. All keys are optional; `the-loop config show` prints those in effect, `the-loop config check` what is wrong.
# This file names programs and folders that run with your rights: nobody else should be able to write it.

routing:
  defaultHarness: claude          # claude, codex, opencode, gemini, bundled (a small agent), or a key of `harnesses`
  # spawnWorkdir: ~/work          # the folder of a session without a `cwd`; paths start at this file's folder
  # harnessArgs:
  #   claude: [--permission-mode, acceptEdits]

standingSessions:
  enabled: false                  # true: `the-loop start` and each boot start the sessions below, too
  sessions: []
  # sessions:
  #   - name: scribe
  #     description: Keeps the notes
  #     cwd: ~/notes
  #     prompt: Read the folder, then wait for questions.
{sessions}  #     loops:                    # what it is prompted with again and again
  #       - {name: tidy, instruction: Tidy the notes of today., cron: "0 18 * * *", timeZone: Europe/Berlin}

{channels}

# service:
#   port: 4114                    # /health and /metrics, on this machine alone; 0: a free one, which `status` names
"""


Models = Mapping[str, type[BaseModel]]  #: the settings models of the channels that are installed, by name


class ConfigExists(Refused):
    """`config init` was asked to write where something is."""

    code = "config_exists"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists and is left as it is", "edit it, or give another path with --config")


class ConfigUnwritable(Refused):
    """`config init` could not write the file."""

    code = "config_unwritable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}", "mend the folder, or give another path with --config")


def where(explicit: Path | None = None, env: Mapping[str, str] | None = None) -> Location:
    """Return which file is the configuration, and why."""
    return locate(explicit, os.environ if env is None else env)


def check(explicit: Path | None = None, env: Mapping[str, str] | None = None, *, models: Models) -> tuple[Problem, ...]:
    """Return everything that is wrong with the file, the channels' own blocks included; empty where nothing is."""
    try:
        settings = load(explicit, env)
    except ConfigError as error:
        path = where(explicit, env).path
        return _merged(error.problems, _channels_problems(blocks_of(path), models, path))
    blocks = {name: block.raw for name, block in settings.channels.items()}
    return in_order(_channels_problems(blocks, models, settings.source))


def writable_by_others(explicit: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the warning about a file that others may change, who would decide then what runs; "" where all is well."""
    path = where(explicit, env).path
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""  # `check` tells that there is none, or that it cannot be read
    if not mode & 0o022:
        return ""
    return (
        f"{path}: others may write to it (mode {mode & 0o777:o}), and with it run programs as you; `chmod go-w {path}`"
    )


def _channels_problems(blocks: Mapping[str, Mapping[str, Any]], models: Models, source: Path | None) -> list[Problem]:
    problems: list[Problem] = []
    for name, raw in blocks.items():
        if name in models:
            problems += channel_problems(raw, models[name], name=name, source=source)
        else:
            problems.append(unknown_channel(name, models, source))
    return problems


def _merged(core: Sequence[Problem], channels: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return all problems. Of one key what core found counts: it names what both find in its own words."""
    told = {problem.key for problem in core}
    return in_order((*core, *(problem for problem in channels if problem.key not in told)))


def show(explicit: Path | None = None, env: Mapping[str, str] | None = None, *, models: Models) -> str:
    """Return the configuration in effect as YAML: every key, with its default where the file has none.

    It holds no secret: the file names variables, never their values. Raises ConfigError.
    """
    resolved = effective(explicit, env, models=models)
    text: str = yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=120)
    return text


def effective(explicit: Path | None = None, env: Mapping[str, str] | None = None, *, models: Models) -> dict[str, Any]:
    """Return what `show` writes, as plain values with the file's own key names. Raises ConfigError."""
    env = os.environ if env is None else env
    location = locate(explicit, env)
    resolved = validate(read_text(location) or "", location.path, env)
    for name, model in models.items():
        raw = resolved["channels"].get(name, {})
        if problems := channel_problems(raw, model, name=name, source=location.path):
            raise ConfigError(problems)
        resolved["channels"][name] = model.model_validate(raw).model_dump(by_alias=True, mode="json")
    return resolved


def schema(*, models: Models) -> dict[str, Any]:
    """Return the JSON Schema of the file, with the keys of the installed channels."""
    whole = with_chats(thread_models()).model_json_schema(by_alias=True)
    blocks = {name: model.model_json_schema(by_alias=True) for name, model in models.items()}
    for block in blocks.values():
        whole["$defs"] |= block.pop("$defs", {})
    channels = whole["properties"]["channels"]
    channels["properties"] = blocks
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "the-loop configuration"
    return whole


def starter() -> str:
    """Return the text of a starter file, with what each installed chat has to say of its own block."""
    blocks = {kind: chat_info(kind).starter or f"  {kind}:\n    enabled: false\n" for kind in installed_kinds()}
    sessions = "".join(f"  #     {kind}: {{enabled: true}}\n" for kind in blocks)
    channels = "".join(("channels:\n", *blocks.values())) if blocks else "channels: {}\n"
    return _STARTER.replace("{sessions}", sessions).replace("{channels}\n", channels)


def init(explicit: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """Write a commented starter file (0600) and return its path.

    Raises ConfigExists where anything is there already, ConfigUnwritable where the folder cannot be written.
    """
    path = where(explicit, env).path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(starter())
    except FileExistsError as error:
        raise ConfigExists(path) from error
    except OSError as error:
        raise ConfigUnwritable(path, str(error.strerror)) from error
    return path
