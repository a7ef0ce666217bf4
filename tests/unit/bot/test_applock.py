"""One process on this machine for one app."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.clients import Token
from bot.connection import app_lock
from core.base.errors import ChannelError

TOKEN = Token("APP_TOKEN", "xapp-1-secret")


def test_a_second_one_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    """The variable is named, the process, and what to do; the token is not."""
    with app_lock(TOKEN, str(tmp_path)), pytest.raises(ChannelError) as refused, app_lock(TOKEN, str(tmp_path)):
        raise AssertionError("two have it")

    assert f"process {os.getpid()}" in str(refused.value)
    assert "APP_TOKEN" in str(refused.value)
    assert "an app of its own" in refused.value.remedy
    assert "secret" not in str(refused.value)
    assert refused.value.transient


def test_another_app_is_another_lock(tmp_path: Path) -> None:
    """Installations do not stand in each other's way."""
    other = Token("APP_TOKEN", "xapp-2-secret")

    with app_lock(TOKEN, str(tmp_path)), app_lock(other, str(tmp_path)):
        held = sorted((tmp_path / "the-loop").iterdir())

    assert len(held) == 2


def test_nothing_is_left_and_nothing_tells_the_token(tmp_path: Path) -> None:
    """The file is for its owner alone, its name is no part of the token, and it goes with the process."""
    with app_lock(TOKEN, str(tmp_path)):
        [file] = (tmp_path / "the-loop").iterdir()
        mode, text = file.stat().st_mode & 0o777, file.read_text()

    assert (mode, text) == (0o600, f"{os.getpid()}\n")
    assert "secret" not in file.name
    assert list((tmp_path / "the-loop").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """With the path and a remedy."""
    (tmp_path / "the-loop").write_text("a file")

    with pytest.raises(ChannelError, match=r"cannot be used"), app_lock(TOKEN, str(tmp_path)):
        raise AssertionError("there is no folder")


def test_a_folder_of_somebody_else_holds_no_lock_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker could take the lock, and Slack would be read by nobody."""
    (tmp_path / "the-loop").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 54321)  # somebody else than whoever made it

    with pytest.raises(ChannelError, match="another user"), app_lock(TOKEN, str(tmp_path)):
        raise AssertionError("it was used")


def test_a_folder_that_others_may_enter_is_closed_to_them(tmp_path: Path) -> None:
    """It is ours, and was made by a careless hand."""
    folder = tmp_path / "the-loop"
    folder.mkdir()
    folder.chmod(0o777)

    with app_lock(TOKEN, str(tmp_path)):
        mode = folder.stat().st_mode & 0o777

    assert mode == 0o700
