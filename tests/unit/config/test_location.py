"""Which file is read, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.paths import default_state_root, is_default, locate, xdg


def test_the_flag_goes_before_the_variable_and_the_variable_before_the_default() -> None:
    """`--config`, then $THE_LOOP_CONFIG, then the user's configuration folder."""
    env = {"HOME": "/h", "THE_LOOP_CONFIG": "/v.yaml", "XDG_CONFIG_HOME": "/c"}

    assert locate(Path("/f.yaml"), env).path == Path("/f.yaml")
    assert locate(None, env).path == Path("/v.yaml")
    assert locate(None, env | {"THE_LOOP_CONFIG": ""}).path == Path("/c/the-loop/cli-config.yaml")
    assert locate(None, {"HOME": "/h"}).path == Path("/h/.config/the-loop/cli-config.yaml")
    assert [locate(Path("/f"), env).named, locate(None, env).named, locate(None, {"HOME": "/h"}).named] == [
        True,
        True,
        False,
    ]


def test_the_current_folder_never_names_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration file in a cloned repository is not looked at."""
    (tmp_path / "cli-config.yaml").write_text("state: {root: /evil}")
    (tmp_path / "the-loop").mkdir()
    (tmp_path / "the-loop" / "cli-config.yaml").write_text("state: {root: /evil}")
    monkeypatch.chdir(tmp_path)

    found = locate(None, {"HOME": "/h", "XDG_CONFIG_HOME": "."})

    assert found.path == Path("/h/.config/the-loop/cli-config.yaml")


def test_a_relative_base_folder_is_ignored() -> None:
    """The XDG base directory specification: relative values are invalid."""
    assert xdg({"HOME": "/h", "XDG_CACHE_HOME": "x"}, "XDG_CACHE_HOME", ".cache") == Path("/h/.cache")
    assert default_state_root({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/the-loop")


def test_a_named_file_is_relative_to_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--config x.yaml` means the file here; it becomes absolute at once."""
    monkeypatch.chdir(tmp_path)

    assert locate(Path("x.yaml"), {}).path == tmp_path / "x.yaml"


def test_the_default_configuration_is_the_one_that_nobody_named() -> None:
    """By its path; without a file, by where its state is. A file that a variable names is another."""
    env = {"HOME": "/h", "THE_LOOP_CONFIG": "/elsewhere.yaml"}
    root = Path("/h/.local/state/the-loop")

    assert is_default(Path("/h/.config/the-loop/cli-config.yaml"), Path("/any"), env)
    assert is_default(None, root, env)
    assert not is_default(Path("/elsewhere.yaml"), root, env)
    assert not is_default(None, Path("/any"), env)
