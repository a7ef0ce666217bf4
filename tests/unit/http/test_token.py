"""The token: given by a variable, or made once and kept."""

from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.http.host import api_token


def test_the_variable_goes_first_and_leaves_no_file(tmp_path: Path) -> None:
    """What the operator gave is not written anywhere."""
    token = api_token(tmp_path / "api-token", "MINE", {"MINE": " given \n"})

    assert token == "given"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("environ", [{}, {"MINE": ""}, {"MINE": "  "}])
def test_one_is_made_once_and_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    """It is the owner's alone, long, and the same at the next start."""
    path = tmp_path / "api-token"

    first = api_token(path, "MINE", environ)

    assert len(first) >= 40
    assert path.read_text() == f"{first}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert api_token(path, "MINE", environ) == first


def test_two_state_roots_have_two_tokens(tmp_path: Path) -> None:
    """It is random."""
    assert api_token(tmp_path / "a", "MINE", {}) != api_token(tmp_path / "b", "MINE", {})


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    """A file without a token is none: an empty token would let everybody in."""
    path = tmp_path / "api-token"
    path.touch(0o600)

    assert api_token(path, "MINE", {}) == path.read_text().strip() != ""


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_token_that_others_may_touch_is_not_used(tmp_path: Path, mode: int) -> None:
    """The refusal names the file and what to do, and the file stays."""
    path = tmp_path / "api-token"
    path.write_text("seen-by-all\n")
    path.chmod(mode)

    with pytest.raises(StoreBroken, match=r"api-token.*others.*remove it") as caught:
        api_token(path, "MINE", {})

    assert "seen-by-all" not in str(caught.value)
    assert path.exists()


def test_a_link_and_a_folder_are_no_token(tmp_path: Path) -> None:
    """What is not a plain file is refused with its path."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir(0o700)

    for name in ("link", "folder"):
        with pytest.raises(StoreBroken, match=name):
            api_token(tmp_path / name, "MINE", {})
