"""What tmux's words mean, and what its clients may know."""

import pytest

from core.base.errors import TmuxMissing
from core.tmux.transport import Reply, base_environment, check_version


@pytest.mark.parametrize(
    ("err", "no_server", "gone", "denied"),
    [
        ("error connecting to /tmp/s (No such file or directory)", True, False, False),
        ("error connecting to /tmp/s (Connection refused)", True, False, False),
        ("no server running on /tmp/s", True, False, False),
        ("error connecting to /tmp/s (Permission denied)", False, False, False),
        ("directory /tmp/tmux-0 has unsafe permissions", False, False, False),
        ("access not allowed", False, False, True),
        ("server exited unexpectedly", False, True, False),
        ("lost server", False, True, False),
        ("can't find session: x", False, False, False),
    ],
)
def test_only_two_texts_mean_that_no_server_runs(err: str, no_server: bool, gone: bool, denied: bool) -> None:
    """No socket, or nobody behind it, is an answer; every other failure is not."""
    reply = Reply(1, "", f"{err}\n")

    assert (reply.no_server, reply.gone, reply.denied) == (no_server, gone, denied)


@pytest.mark.parametrize("said", ["no server running on /x", "lost server", "access not allowed"])
def test_no_screen_says_that_there_is_no_server(said: str) -> None:
    """A control client's answers have texts of screens in them, where a line may look like the end of an answer."""
    reply = Reply(1, "", f"{said}\n%error 1796074938 339 1\n", by_server=True)

    assert (reply.no_server, reply.gone, reply.denied) == (False, False, False)


@pytest.mark.parametrize(
    ("text", "version"),
    [("3.2", (3, 2)), ("3.3a", (3, 3)), ("3.6b", (3, 6)), ("next-3.8", (3, 8)), ("10.0", (10, 0)), ("master", (99, 0))],
)
def test_versions_are_understood(text: str, version: tuple[int, int]) -> None:
    """Releases, patches and development builds."""
    assert check_version(text) == version


@pytest.mark.parametrize("text", ["3.1c", "2.9", "1.8", "", "unknown"])
def test_old_versions_are_refused(text: str) -> None:
    """What lacks our commands is named, with what to install."""
    with pytest.raises(TmuxMissing, match=r"too old; install tmux 3\.2 or newer"):
        check_version(text)


def test_clients_know_neither_secrets_nor_the_outer_tmux() -> None:
    """What clients know, a server that they start would pass on to every pane."""
    environ = {
        "TOKEN": "x",
        "TMUX": "a",
        "TMUX_PANE": "%1",
        "THE_LOOP_INSTANCE": "i-a",
        "HOME": "/h",
        "LANG": "de_DE.UTF-8",
    }

    kept = base_environment(environ, frozenset({"TOKEN"}))

    assert kept == {"HOME": "/h", "LANG": "de_DE.UTF-8", "TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("locale", "added"),
    [
        ({}, True),
        ({"LANG": "C"}, True),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.utf8"}, False),
    ],
)
def test_a_utf8_locale_is_made_sure_of(locale: dict[str, str], added: bool) -> None:
    """The operator's own locale stays where it can say every character."""
    kept = base_environment({**locale, "TERM": "screen"}, frozenset())

    assert kept == {**locale, "TERM": "screen"} | ({"LC_ALL": "C.UTF-8"} if added else {})
