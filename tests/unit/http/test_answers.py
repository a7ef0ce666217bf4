"""Which status code an error has, and its one form."""

import json

import pytest

from core.base import errors
from core.base.errors import CoreError
from core.http.answers import problem, told


@pytest.mark.parametrize(
    ("error", "status", "again"),
    [
        (errors.InvalidValue("bad", "good"), 400, False),
        (errors.NotPermitted("no"), 403, False),
        (errors.UnknownSession("x"), 404, False),
        (errors.NotRunning("x"), 409, False),
        (errors.NameTaken("x"), 409, False),
        (errors.DeclaredSession("x"), 409, False),
        (errors.RecordUnreadable("x", "/x", "bad"), 409, False),
        (errors.LockBusy("x"), 503, True),
        (errors.TmuxSilent("x"), 503, True),
        (errors.StoreBroken("x"), 503, True),
        (errors.SpawnFailed("x"), 500, False),
    ],
)
def test_the_class_of_an_error_decides(error: CoreError, status: int, again: bool) -> None:
    """What is bad input, what is not there, what the state does not allow; and what may be tried again, and when."""
    answer = problem(error, lambda text: text.upper())

    assert answer.status_code == status
    assert ("retry-after" in answer.headers) is again
    shown = json.loads(bytes(answer.body))["error"]
    assert (shown["code"], shown["message"]) == (error.code, error.message.upper())


def test_half_a_character_of_a_path_is_told_as_an_escape() -> None:
    """A folder's name need not be UTF-8."""
    assert bytes(told({"cwd": "/tmp/\udcff"}).body) == b'{"cwd": "/tmp/\\udcff"}'
