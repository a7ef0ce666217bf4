"""Where the socket of our own tmux server lies."""

import os
from pathlib import Path

from core.tmux.server import LONGEST, Place, TmuxServer, place_of

UID = os.geteuid()


def test_the_socket_lies_in_the_state_folder() -> None:
    """Not in /tmp, whatever the environment says of temporary folders."""
    place = place_of(Path("/srv/state/local"), "the-loop", {"TMPDIR": "/elsewhere", "XDG_RUNTIME_DIR": "/run/user/1"})

    assert place == Place(Path(f"/srv/state/local/tmux/tmux-{UID}/the-loop"), by_name=False)


def test_tmux_tmpdir_goes_first(tmp_path: Path) -> None:
    """Who sets it has said where sockets belong; tmux then finds the server by its name."""
    place = place_of(Path("/srv/state/local"), "the-loop", {"TMUX_TMPDIR": str(tmp_path)})

    assert place == Place(tmp_path / f"tmux-{UID}" / "the-loop", by_name=True)


def test_a_tmux_tmpdir_that_is_not_there_counts_as_tmux_counts_it() -> None:
    """tmux falls back to /tmp, so what we print must do so too."""
    place = place_of(Path("/srv/state/local"), "the-loop", {"TMUX_TMPDIR": "/no/such/folder"})

    assert place == Place(Path(f"/tmp/tmux-{UID}/the-loop"), by_name=True)


def test_a_path_that_no_socket_can_have_leaves_the_choice_to_tmux() -> None:
    """The limit is in bytes, and exact."""
    fixed = len(f"/tmux/tmux-{UID}/the-loop")
    fits = Path("/" + "ä" * ((LONGEST - fixed - 1) // 2) + "x" * ((LONGEST - fixed - 1) % 2))

    assert len(os.fsencode(place_of(fits, "the-loop", {}).socket)) == LONGEST
    assert place_of(fits, "the-loop", {}).by_name is False
    assert place_of(fits, "the-loopx", {}) == Place(Path(f"/tmp/tmux-{UID}/the-loopx"), by_name=True)


def test_tmux_is_addressed_by_the_whole_path(short_path: Path) -> None:
    """Ours by its socket's path, which a person can type anywhere; the user's own server as tmux finds it."""
    ours = TmuxServer("the-loop", short_path / "tmux.conf", environ={})
    theirs = TmuxServer("", short_path / "tmux.conf", environ={})
    socket = str(short_path / "tmux" / f"tmux-{UID}" / "the-loop")

    assert ours.command == ("tmux", "-u", "-S", socket, "-f", str(short_path / "tmux.conf"))
    assert ours.manual_command == ("tmux", "-S", socket)
    assert (theirs.command, theirs.manual_command) == (("tmux", "-u"), ("tmux",))


def test_a_server_that_lives_elsewhere_is_addressed_there(short_path: Path) -> None:
    """One that an earlier version or another environment started is not lost: its process is known."""
    server = TmuxServer("the-loop", short_path / "tmux.conf", environ={})

    server.remember(os.getpid(), "/tmp/tmux-0/the-loop")

    assert server.socket == Path("/tmp/tmux-0/the-loop")
    assert server.command[2:4] == ("-S", "/tmp/tmux-0/the-loop")
    assert server.manual_command == ("tmux", "-S", "/tmp/tmux-0/the-loop")


def test_a_server_that_ended_is_forgotten(short_path: Path) -> None:
    """The next one is made at its own place; a process of the same id is another one."""
    server = TmuxServer("the-loop", short_path / "tmux.conf", environ={})
    memory = short_path / "tmux.the-loop.server"

    memory.write_text(f"{os.getpid()} 1 /tmp/tmux-0/the-loop\n")

    assert server.socket == server.place.socket


def test_the_socket_is_private_and_its_folder_made(short_path: Path) -> None:
    """Both folders are the owner's alone."""
    server = TmuxServer("the-loop", short_path / "tmux.conf", environ={})

    server.write_conf()
    server.write_conf()

    for folder in (server.socket.parent, server.socket.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
