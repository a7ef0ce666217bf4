"""The adapter of Gemini CLI, without the program."""

import json
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import HarnessNotInstalled, InvalidValue, UnsupportedHarness
from core.harness.gemini.adapter import GeminiHarness
from core.harness.gemini.home import without_comments
from core.model.harness import SessionContext
from core.model.session import Definition

DEFINITION = Definition("scribe")
KEY = {"GEMINI_API_KEY": "key-of-nobody"}


def install(tmp_path: Path, version: str = "0.61.0") -> dict[str, str]:
    """Install a program of that version as npm does, and return an environment that finds it."""
    package = tmp_path / "lib" / "node_modules" / "@google" / "gemini-cli"
    (package / "bundle").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@google/gemini-cli", "version": version}))
    (package / "bundle" / "gemini.js").write_text("#!/bin/sh\n")
    (package / "bundle" / "gemini.js").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gemini").symlink_to(package / "bundle" / "gemini.js")
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a program called gemini, and a key."""
    return {**install(tmp_path), **KEY}


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session."""
    (tmp_path / "work").mkdir()
    return SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=tmp_path / "work",
        folder=tmp_path / "sessions" / "s-1",
        spool=tmp_path / "spool" / "i-1",
        notify=tmp_path / "poke",
        args=(),
        session_id=str(uuid.uuid4()),
    )


def person(tmp_path: Path, **files: object) -> Path:
    """Write what the person keeps for Gemini, and return the folder."""
    folder = tmp_path / "home" / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def prepared(environ: dict[str, str], context: SessionContext, *, trust: bool = True) -> Path:
    """Prepare the session and return the folder that Gemini reads."""
    GeminiHarness(environ, trust_enabled=trust).prepare(context)
    return context.folder / "gemini" / ".gemini"


def settings_in(folder: Path) -> dict[str, Any]:
    """Return the session's own settings."""
    settings: dict[str, Any] = json.loads((folder / "settings.json").read_text())
    return settings


def test_missing_program_is_named() -> None:
    """Without the program on PATH the session is refused."""
    with pytest.raises(HarnessNotInstalled, match="'gemini' is not on PATH"):
        GeminiHarness({"HOME": "/", "PATH": "/nowhere"}).check(DEFINITION, ())


def test_program_that_is_too_old_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """A version before the oldest that was tried may have neither the hooks nor the arguments."""
    gemini = GeminiHarness({**install(tmp_path, "0.9.0"), **KEY})

    with pytest.raises(UnsupportedHarness, match=r"gemini 0\.9\.0 is too old") as caught:
        gemini.check(DEFINITION, ())

    assert "npm install -g @google/gemini-cli" in caught.value.remedy


def test_newer_program_runs_and_is_told_of(tmp_path: Path) -> None:
    """A version that nobody has tried is no reason to refuse it."""
    gemini = GeminiHarness({**install(tmp_path, "0.99.0"), **KEY})

    gemini.check(DEFINITION, ())

    installed = gemini.installed()
    assert installed is not None
    assert installed.note().startswith("newer than any that was tried")


def test_missing_login_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """Where nothing says how to log in Gemini would ask, and nobody could answer."""
    gemini = GeminiHarness(install(tmp_path))

    with pytest.raises(UnsupportedHarness, match="not logged in") as caught:
        gemini.check(DEFINITION, ())

    assert "run `gemini` once" in caught.value.remedy


@pytest.mark.parametrize(
    "variables", [KEY, {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, {"GOOGLE_GENAI_USE_GCA": "true"}], ids=str
)
def test_login_by_the_environment_is_chosen_for_the_session(
    tmp_path: Path, context: SessionContext, variables: dict[str, str]
) -> None:
    """Gemini asks which login to use, although a variable says it: the session's settings answer."""
    environ = {**install(tmp_path), **variables}
    GeminiHarness(environ).check(DEFINITION, ())

    kind = settings_in(prepared(environ, context))["security"]["auth"]["selectedType"]

    assert kind == {"G": "gemini-api-key", "V": "vertex-ai", "C": "oauth-personal"}[_kind(variables)]


def _kind(variables: dict[str, str]) -> str:
    [name] = variables
    return "V" if name.endswith("VERTEXAI") else "C" if name.endswith("GCA") else "G"


def test_login_of_the_person_is_kept(environ: dict[str, str], tmp_path: Path, context: SessionContext) -> None:
    """What their settings choose goes before a variable."""
    person(tmp_path, settings={"security": {"auth": {"selectedType": "oauth-personal"}}})

    settings = settings_in(prepared(environ, context))

    assert settings["security"]["auth"]["selectedType"] == "oauth-personal"


@pytest.mark.parametrize("arg", ["--resume", "-r", "--session-id=x", "-p", "-i", "--acp", "--worktree", "-v", "--"])
def test_flags_that_are_ours_are_refused(environ: dict[str, str], arg: str) -> None:
    """What decides about the conversation or the pane is not the operator's."""
    with pytest.raises(InvalidValue, match="harnessArgs of gemini"):
        GeminiHarness(environ).check(DEFINITION, ("--model", "m", arg))


def test_home_of_the_session_has_the_persons_things_and_ours(
    environ: dict[str, str], tmp_path: Path, context: SessionContext
) -> None:
    """Settings are joined; everything else is there by a link; what is each session's own is not."""
    theirs = {
        "ui": {"theme": "x"},
        "hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
        "mcpServers": {"other": {"command": "y"}},
        "context": {"includeDirectories": ["/elsewhere"]},
    }
    folder = person(tmp_path, settings="// mine\n" + json.dumps(theirs), oauth_creds={}, projects={})
    (folder / "commands").mkdir()

    own = prepared(environ, context)

    settings = settings_in(own)
    commands = [hook["command"] for entry in settings["hooks"]["AfterAgent"] for hook in entry["hooks"]]
    assert settings["ui"] == {"theme": "x"}
    assert commands == ["theirs", f"{context.folder / 'report'} AfterAgent"]
    assert set(settings["mcpServers"]) == {"other", "the-loop"}
    assert settings["mcpServers"]["the-loop"]["trust"] is True
    assert settings["context"]["includeDirectories"] == ["/elsewhere", str(context.folder / "files")]
    assert (own / "oauth_creds.json").resolve() == folder / "oauth_creds.json"
    assert (own / "commands").resolve() == folder / "commands"
    assert not (own / "projects.json").exists()
    assert (own / "settings.json").stat().st_mode & 0o777 == 0o600


def test_nothing_of_the_persons_is_written(environ: dict[str, str], tmp_path: Path, context: SessionContext) -> None:
    """Their folder is as it was, also after a second start."""
    folder = person(tmp_path, settings={"ui": {}}, trustedFolders={})
    before = {entry.name: entry.read_bytes() for entry in folder.iterdir()}

    prepared(environ, context)
    prepared(environ, context)

    assert {entry.name: entry.read_bytes() for entry in folder.iterdir()} == before


def test_links_follow_what_the_person_has(environ: dict[str, str], tmp_path: Path, context: SessionContext) -> None:
    """What they have removed since is gone at the next start, and what is new is there."""
    folder = person(tmp_path, old={})
    prepared(environ, context)
    (folder / "old.json").unlink()
    person(tmp_path, new={})

    own = prepared(environ, context)

    assert not os.path.lexists(own / "old.json")
    assert (own / "new.json").is_symlink()


@pytest.mark.parametrize("trust", [True, False])
def test_folder_is_trusted_where_that_is_configured(
    environ: dict[str, str], tmp_path: Path, context: SessionContext, *, trust: bool
) -> None:
    """The person's own word goes first; the folder of what people send along is always trusted."""
    person(tmp_path, trustedFolders={"/theirs": "DO_NOT_TRUST"})

    own = prepared(environ, context, trust=trust)

    trusted = json.loads((own / "trustedFolders.json").read_text())
    assert trusted["/theirs"] == "DO_NOT_TRUST"
    assert (str(context.cwd.resolve()) in trusted) is trust
    assert trusted[str(context.folder.resolve() / "files")] == "TRUST_FOLDER"


def test_hooks_that_the_person_has_switched_off_stay_off_but_for_ours(
    environ: dict[str, str], tmp_path: Path, context: SessionContext
) -> None:
    """Their switch is for their hooks; the session's own are needed."""
    theirs = {"AfterAgent": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    person(tmp_path, settings={"hooks": theirs, "hooksConfig": {"enabled": False}})

    settings = settings_in(prepared(environ, context))

    assert "hooksConfig" not in settings
    assert "theirs" not in json.dumps(settings)
    assert "SessionStart" in settings["hooks"]


def test_hooks_that_the_folder_switches_off_are_foretold(environ: dict[str, str], context: SessionContext) -> None:
    """A project's settings go before the session's, so that nothing of ours would run."""
    (context.cwd / ".gemini").mkdir()
    (context.cwd / ".gemini" / "settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    gemini = GeminiHarness(environ)

    assert str(context.cwd / ".gemini" / "settings.json") in gemini.silence_ahead(context.cwd, ())
    assert gemini.silence_ahead(context.folder, ()) == ""


def test_settings_that_cannot_be_read_are_named(
    environ: dict[str, str], tmp_path: Path, context: SessionContext
) -> None:
    """Gemini would refuse to start with them."""
    person(tmp_path, settings="{")

    with pytest.raises(InvalidValue, match=r"settings\.json cannot be read"):
        prepared(environ, context)


def test_launch_names_conversation_mode_and_prompt(environ: dict[str, str], context: SessionContext) -> None:
    """A fresh start takes our id, a resume goes on with it, and the prompt is never read as an option."""
    gemini = GeminiHarness(environ)

    fresh = gemini.launch(context, resume=False, prompt="--help me")
    again = gemini.launch(replace(context, args=("--yolo",)), resume=True, prompt=None)

    assert fresh.argv[1:] == (
        *("--session-id", context.session_id),
        *("--approval-mode", "default"),
        "--prompt-interactive=--help me",
    )
    assert again.argv[1:] == ("--resume", context.session_id, "--yolo")
    assert fresh.env["GEMINI_CLI_HOME"] == str(context.folder / "gemini")


def test_mode_of_the_person_is_kept(environ: dict[str, str], tmp_path: Path, context: SessionContext) -> None:
    """It is named at the start, so that a project's settings cannot choose another."""
    person(tmp_path, settings={"general": {"defaultApprovalMode": "auto_edit"}})

    launch = GeminiHarness(environ).launch(context, resume=False, prompt=None)

    assert launch.argv[3:5] == ("--approval-mode", "auto_edit")


def test_comments_are_taken_out_of_settings() -> None:
    """A mark of one within a text stays."""
    text = '{"a": "http://x", /* b\n */ "c": "\\"//", // d\n "e": 1}'

    assert json.loads(without_comments(text)) == {"a": "http://x", "c": '"//', "e": 1}


def test_home_of_a_session_is_nobodys(environ: dict[str, str], tmp_path: Path, context: SessionContext) -> None:
    """A session that is started in another one's shell has the person's settings, not that session's."""
    person(tmp_path, settings={"ui": {"theme": "theirs"}})
    prepared(environ, context)
    inside = {**environ, "GEMINI_CLI_HOME": str(context.folder / "gemini")}
    other = replace(context, folder=tmp_path / "sessions" / "s-2", spool=tmp_path / "spool" / "i-2")

    own = prepared(inside, other)

    hooks = settings_in(own)["hooks"]["AfterAgent"]
    assert [entry["hooks"][0]["command"] for entry in hooks] == [f"{other.folder / 'report'} AfterAgent"]
    assert settings_in(own)["ui"]["theme"] == "theirs"
