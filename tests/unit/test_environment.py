"""Which variables a start gives on."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.environment import chosen, differences, fingerprints, is_agents, server_environment

_PLAIN = {"HOME": "/h", "LANG": "en_GB.UTF-8", "MY_KEY": "k"}


@pytest.mark.parametrize(
    "name",
    ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_SANDBOX", "GEMINI_CLI", "OPENCODE", "CURSOR_AGENT", "AI_AGENT"],
)
def test_mark_of_an_agent_tells_whose_shell_it_is_and_is_never_given_on(name: str) -> None:
    """With it goes what that agent was told; the rest stays."""
    environ = {**_PLAIN, name: "1", "NO_COLOR": "1", "ANTHROPIC_MODEL": "m", "ANTHROPIC_BASE_URL": "u"}

    assert is_agents(environ)
    assert chosen(environ) == {**_PLAIN, "ANTHROPIC_BASE_URL": "u"}


@pytest.mark.parametrize(
    "name",
    ["NO_COLOR", "ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "CLAUDE_CODE_EFFORT_LEVEL", "CODEX_QUIET", "CI"],
)
def test_same_name_is_a_wish_in_a_persons_shell_and_a_choice_in_an_agents(name: str) -> None:
    """Nothing else tells the two apart."""
    assert chosen({**_PLAIN, name: "x"}) == {**_PLAIN, name: "x"}
    assert chosen({**_PLAIN, name: "x", "CLAUDECODE": "1"}) == _PLAIN


@pytest.mark.parametrize(("name", "value"), [("PAGER", "less"), ("GIT_EDITOR", "vi"), ("CLAUDE_CONFIG_DIR", "/c")])
def test_persons_tools_and_places_stay_in_an_agents_shell(name: str, value: str) -> None:
    """What an agent sets itself has another value."""
    assert chosen({**_PLAIN, name: value, "CLAUDECODE": "1"})[name] == value


@pytest.mark.parametrize(
    "name",
    ["TMUX", "TERM", "TERM_PROGRAM", "SSH_TTY", "VSCODE_IPC_HOOK", "NOTIFY_SOCKET", "CLAUDE_CODE_SSE_PORT", "SHLVL"],
)
def test_what_tells_of_the_starters_place_is_not_given_on(name: str) -> None:
    """The program is in no terminal or unit but its pane's, and that is no sign of an agent's shell."""
    assert chosen({**_PLAIN, name: "x", "NO_COLOR": "1"}) == {**_PLAIN, "NO_COLOR": "1"}


def test_what_make_tells_its_commands_is_not_given_on() -> None:
    """Within a recipe it is make's own; elsewhere somebody wishes every make to have it."""
    wishes = {**_PLAIN, "MAKEFLAGS": "-j8", "GNUMAKEFLAGS": "-k"}
    recipe = {
        **_PLAIN,
        "MAKEFLAGS": "w",
        "MFLAGS": "-w",
        "MAKELEVEL": "1",
        "MAKEOVERRIDES": "",
        "MAKE_TERMOUT": "/dev/pts/1",
    }

    assert chosen(wishes) == wishes
    assert chosen(recipe) == _PLAIN


def test_secrets_and_our_own_variables_are_not_given_on() -> None:
    """By the names that the configuration has, and by the beginning of ours."""
    environ = {**_PLAIN, "SLACK": "xoxb", "THE_LOOP_CONFIG": "/c", "THE_LOOP_ANYTHING": "x"}

    assert chosen(environ, {"SLACK"}) == _PLAIN


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: "=" not in name and "\0" not in name), st.just("1")))
def test_every_name_that_is_given_on_can_be_set_by_a_shell(environ: dict[str, str]) -> None:
    """Anything else would end the shell that sets it."""
    assert all(name.isascii() and name.isidentifier() for name in chosen(environ))


def test_names_that_a_shell_keeps_for_itself_end_no_pane() -> None:
    """bash in the place of sh refuses to have its own read-only variables set, and ends."""
    environ = chosen(dict.fromkeys(("UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "GROUPS", "MY_KEY"), "1"))
    script = "".join(f"export {name}=1\n" for name in environ) + "echo alive"

    done = subprocess.run(["bash", "--posix", "-c", script], capture_output=True, text=True, check=False)

    assert done.stdout == "alive\n"


def test_server_has_what_it_needs_itself() -> None:
    """Neither keys nor anything that may be another tomorrow."""
    environ = {**_PLAIN, "PATH": "/bin", "LC_CTYPE": "C.UTF-8", "ANTHROPIC_API_KEY": "k"}

    assert server_environment(environ) == {"HOME": "/h", "LANG": "en_GB.UTF-8", "PATH": "/bin", "LC_CTYPE": "C.UTF-8"}


def test_differences_are_names_of_what_changed_came_or_went() -> None:
    """Whatever a login changes is none."""
    before = fingerprints({"A": "1", "B": "2", "C": "3", "SSH_AUTH_SOCK": "/a"})
    now = fingerprints({"A": "1", "B": "two", "D": "4", "SSH_AUTH_SOCK": "/b"})

    assert differences(before, now) == ("B", "C", "D")


def test_fingerprint_tells_nothing_but_a_change() -> None:
    """Four hexadecimal digits, whatever the value's length."""
    assert {len(mark) for mark in fingerprints({"A": "", "B": "x" * 10_000, "C": "\udcff"}).values()} == {4}
