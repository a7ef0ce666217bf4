"""What a start writes for the pane."""

import subprocess
from pathlib import Path

import pytest

from core.base.errors import InvalidValue
from core.base.paths import StatePaths
from core.config.settings import ChannelBlock, ServiceSettings, Settings, secret_variables
from core.model.directive import compose_pointer
from core.model.harness import Launch, SessionContext
from core.model.session import Definition
from core.model.tools import EVERY_TOOL
from core.session.folder import clear_flags, has_hold_file, set_hold_file
from core.session.launching import (
    boot_argument,
    check_cwd,
    grants,
    launcher_text,
    make_folders,
    read_brief,
    remove_files,
    write_launcher,
)
from core.session.sessions import resolve


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """Give the context of one instance, its folders made."""
    paths = StatePaths(tmp_path)
    made = SessionContext(
        "scribe", "s-1", "i-1", tmp_path, paths.session("s-1"), paths.spool_of("i-1"), paths.notify, (), None
    )
    make_folders(made)
    return made


def test_launcher_drops_secrets_and_passes_arguments_exactly(context: SessionContext) -> None:
    """No shell sees an argument, and a named secret is gone; the script is the owner's alone."""
    odd = ("a b", "$HOME", "'", '"', ";", "`id`", "line\nbreak", "")
    show = 'printf "%s|" "$@"; printf %s "${SECRET-gone}"'
    path = write_launcher(context, Launch(("/bin/sh", "-c", show, "sh", *odd)), ("SECRET",))

    done = subprocess.run([path], env={"SECRET": "x", "HOME": "/h"}, capture_output=True, text=True, check=True)

    assert done.stdout == "".join(f"{word}|" for word in odd) + "gone"
    assert path.stat().st_mode & 0o777 == 0o700


def test_secret_names_come_from_every_env_key(tmp_path: Path) -> None:
    """Whatever a channel's block calls `…Env` is dropped, and the API's own; what is no variable's name cannot be."""
    raw = {"botTokenEnv": "BOT", "read": {"signingSecretEnv": "SIGN"}, "appTokenEnv": "a b", "channel": "C1"}

    environ = {"THE_LOOP_CONFIG": "/x", "THE_LOOP_API_TOKEN": "t", "PATH": "/bin"}

    channels = {"slack": ChannelBlock("slack", True, raw)}
    names = secret_variables(Settings(tmp_path, channels=channels, service=ServiceSettings(token_env="MINE")), environ)

    assert names == ("BOT", "MINE", "SIGN", "THE_LOOP_API_TOKEN")


def test_launcher_without_secrets_only_becomes_the_harness() -> None:
    """There is nothing to drop."""
    assert launcher_text(Launch(("claude",)), ()) == "#!/bin/sh\nexec claude\n"


def test_a_harness_that_draws_rows_has_a_terminal_that_breaks_none() -> None:
    """What the terminal counts wider than the harness is cut at the edge: broken, it would shift every row below."""
    text = launcher_text(Launch(("printf", "%s", "drawn"), keeps_rows=True), ())

    assert subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=True).stdout == b"\x1b[?7ldrawn"


def test_long_boot_prompt_goes_by_file(context: SessionContext) -> None:
    """Above the limit in bytes the argument only says where to read."""
    path = context.folder / "boot-prompt.md"

    assert boot_argument(context, "ä" * 10, "k3f9x2", 20) == "ä" * 10
    assert not path.exists()
    assert boot_argument(context, "ä" * 10, "k3f9x2", 19) == compose_pointer(str(path), "k3f9x2")
    assert path.read_text() == "ä" * 10


def test_unreadable_prompt_file_is_refused_by_name(tmp_path: Path) -> None:
    """Session, path and reason are in the message."""
    with pytest.raises(InvalidValue, match=r"scribe: its promptFile .*none\.md cannot be read: No such file"):
        read_brief(Definition("scribe", prompt_file=str(tmp_path / "none.md")))


def test_prompt_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Nobody guesses an encoding."""
    (tmp_path / "brief.md").write_bytes(b"\xff\xfe")

    with pytest.raises(InvalidValue, match="is not UTF-8"):
        read_brief(Definition("scribe", prompt_file=str(tmp_path / "brief.md")))


@pytest.mark.parametrize("given", ["~no-such-user-here/x", "work", "."])
def test_a_folder_that_is_no_whole_path_is_refused(given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user may be gone since, and what the current folder has of that name is nobody's folder."""
    (tmp_path / given).mkdir(parents=True, exist_ok=True)
    (tmp_path / "brief").touch()
    monkeypatch.chdir(tmp_path)
    session = Definition("scribe", cwd=given, prompt_file="brief")

    with pytest.raises(InvalidValue, match=r"scribe: its folder .* does not exist"):
        check_cwd(resolve(session, Settings(tmp_path)))
    with pytest.raises(InvalidValue, match="scribe: its promptFile brief cannot be read: No such file"):
        read_brief(session)


def test_flags_of_an_earlier_instance_are_cleared(tmp_path: Path, context: SessionContext) -> None:
    """`hold`, `asking` and `tool` belong to one instance."""
    paths = StatePaths(tmp_path)
    set_hold_file(paths, "s-1")
    (context.folder / "asking").touch()
    (context.folder / "tool").touch()

    clear_flags(paths, "s-1", held=False)

    assert not has_hold_file(paths, "s-1")
    assert list(context.folder.iterdir()) == []


def test_removing_files_twice_is_fine(tmp_path: Path, context: SessionContext) -> None:
    """A deletion that was cut short goes on."""
    remove_files(StatePaths(tmp_path), "s-1", "i-1")
    remove_files(StatePaths(tmp_path), "s-1", "i-1")

    assert not context.folder.exists()
    assert not context.spool.exists()


def test_agent_is_told_of_the_program_only_where_it_is(tmp_path: Path) -> None:
    """What is not on PATH is not named."""
    program = tmp_path / "the-loop"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert grants({"PATH": "/nonexistent"}, has_thread=True) == ()
    given = grants({"PATH": str(tmp_path)}, has_thread=True)
    assert {grant.command.split()[0] for grant in given} == {str(program)}
    assert set(grants({"PATH": str(tmp_path)}, has_thread=False)) < set(given)


def test_agent_is_told_of_tools_only_where_it_was_given_them(tmp_path: Path) -> None:
    """Then it is told of those commands alone that do what no tool does, and of a thread's where there is one."""
    program = tmp_path / "the-loop"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    bare = grants({"PATH": "/nonexistent"}, has_thread=False, has_tools=True)
    given = grants({"PATH": str(tmp_path)}, has_thread=True, has_tools=True)

    assert {grant.command for grant in given if grant.tool} == {spec.name for spec in EVERY_TOOL}
    assert {grant.command for grant in given} - {grant.command for grant in bare} == {
        "post",
        "ask",
        *(f"{program} standing {verb} NAME" for verb in ("screen", "logs", "queue")),
    }
    assert all(grant.tool for grant in bare)
