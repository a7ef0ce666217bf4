"""Secrets never reach a pane, and the server is as it should be."""

import os
from pathlib import Path

import pytest

from core.base.names import new_instance
from core.tmux.server import TmuxServer
from tests.support.tmux import PrivateTmux, launcher, private_tmux, wait_until

_SECRETS = {"MY_BOT_TOKEN": "xoxb-very-secret", "MY_APP_TOKEN": "xapp-very-secret"}


def _environments(private: PrivateTmux, pid: int) -> str:
    """Return all that a program in the pane can see: its own environment and what tmux tells."""
    own = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return own + private.tmux("show-environment", "-g") + private.tmux("show-environment", "-t", "=loop-standing-test:")


def test_server_is_started_with_next_to_nothing() -> None:
    """A server lives for months: it has neither tokens nor what may have changed since, and a pane none of it."""
    operator = {**_SECRETS, "AGENT_KEY": "of-that-day", "LANG": "de_DE.UTF-8", "THE_LOOP_INSTANCE": "i-outer"}
    with private_tmux(operator, frozenset(_SECRETS)) as private:
        pane, _ = private.reading(private.runner())

        seen = _environments(private, pane.pid)
        server = Path(f"/proc/{private.pid()}/environ").read_text(errors="replace")

        for text in (seen, server):
            assert [word for word in (*_SECRETS.values(), *_SECRETS, "AGENT_KEY", "i-outer") if word in text] == []
        assert "LANG=de_DE.UTF-8" in server
        assert f"THE_LOOP_INSTANCE={pane.tag}" in seen


@pytest.mark.parametrize("value", ["two\nlines and a ' and \" and $HOME and \\", "", "é\udcff", "x" * 100_000])
def test_program_has_exactly_what_it_was_given(private: PrivateTmux, value: str) -> None:
    """Whatever the values hold; and nothing else but its tag and where its terminal is."""
    pane, _ = private.reading(private.runner())
    pane = private.spawn(private.runner(), Path("/bin/cat"), target="loop-standing-other", GIVEN=value)

    wait_until(lambda: Path(f"/proc/{pane.pid}/cmdline").read_bytes()[-4:] == b"cat\0", "the program runs")

    entries = Path(f"/proc/{pane.pid}/environ").read_bytes().split(b"\0")
    environ = dict(os.fsdecode(entry).partition("=")[::2] for entry in entries if entry)
    assert environ["GIVEN"] == value
    ours = {"GIVEN", "PATH", "TMUX_TMPDIR", "THE_LOOP_INSTANCE", "PWD"}
    assert set(environ) - ours == {"TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"}
    assert private.tmux("list-buffers") == ""


def test_list_of_processes_shows_no_settings_of_a_pane(private: PrivateTmux) -> None:
    """The server's own name in the list of processes, which is there for good, holds nothing of the first session."""
    private.spawn(private.runner(), Path("/bin/cat"), SETTING="of-the-pane")

    shown = Path(f"/proc/{private.pid()}/cmdline").read_bytes()

    assert b"start-server" in shown
    assert b"of-the-pane" not in shown


def test_server_that_was_started_with_secrets_is_cleaned() -> None:
    """Where somebody else started the server with tokens in its environment, panes get none of them."""
    with private_tmux(_SECRETS, frozenset(_SECRETS)) as private:
        private.tmux("new-session", "-d", "-s", "older", "cat")
        assert "very-secret" in private.tmux("show-environment", "-g")

        pane, _ = private.reading(private.runner())

        assert "very-secret" not in _environments(private, pane.pid)


def test_the_users_own_server_keeps_its_environment_and_the_pane_none_of_it() -> None:
    """On the user's server the global environment is not ours to change; our pane is clean, and stays."""
    with private_tmux(_SECRETS, frozenset(_SECRETS)) as private:
        private.server = TmuxServer("", private.server.conf, private.server.secrets, environ=private.environ)
        private.tmux("-f", "/dev/null", "new-session", "-d", "-s", "theirs", "cat")
        private.tmux("set-option", "-t", "=theirs:", "destroy-unattached", "off")
        private.tmux("set-option", "-g", "destroy-unattached", "on")

        pane, _ = private.reading(private.runner())

        assert "very-secret" in private.tmux("show-environment", "-g")
        environ = Path(f"/proc/{pane.pid}/environ").read_text(errors="replace")
        assert "very-secret" not in environ


def test_client_without_a_locale_still_tells_non_ascii_names(private: PrivateTmux) -> None:
    """In the C locale tmux would write `_` for every character outside ASCII."""
    private.environ.clear()
    private.environ.update({"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(private.folder), "LC_ALL": "C"})
    runner = private.runner()
    private.reading(runner)
    private.tmux("new-session", "-d", "-s", "écran|漢字", "cat")

    names = {pane.target for pane in runner.survey().panes}

    assert names == {"loop-standing-test", "écran|漢字"}


def test_configuration_is_taken(private: PrivateTmux) -> None:
    """The server runs with our file: it outlives its last session, and takes nothing over from clients."""
    private.reading(private.runner())

    assert private.tmux("show-options", "-s", "-v", "exit-empty") == "off\n"
    assert private.tmux("show-options", "-g", "update-environment").strip() in ("update-environment", "")
    assert private.server.conf.stat().st_mode & 0o777 == 0o600


def test_exit_without_remaining_pane(private: PrivateTmux) -> None:
    """With remain-on-exit off the session goes with its program."""
    runner = private.runner(remain_on_exit=False)
    private.spawn(runner, launcher(private.folder / "a", "exit 0"))

    wait_until(lambda: not runner.survey().panes, "the session is gone")


@pytest.mark.parametrize("write", [True, False])
def test_commands_for_people_hit_exactly_the_session(private: PrivateTmux, write: bool) -> None:
    """The commands that we print name the session exactly; the killing one spares a name that it begins."""
    runner = private.runner()
    private.spawn(runner, Path("/bin/cat"), target="work2", instance=new_instance())

    attach = runner.attach_command("work", write=write)
    kill = runner.kill_command("work2")

    socket = str(private.folder / f"tmux-{os.getuid()}" / private.server.socket_name)
    assert attach == ("tmux", "-S", socket, "attach-session", *(() if write else ("-r",)), "-t=work:")
    assert kill == ("tmux", "-S", socket, "kill-session", "-t=work2:")
    private.tmux(*kill[3:])
    assert runner.survey().panes == ()
