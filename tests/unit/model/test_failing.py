"""What people are told of a turn that failed."""

import pytest

from core.model.activity import Failure, remedy_of, what_failed


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_has_words_and_a_remedy(failure: Failure) -> None:
    """None is left to its code."""
    what = what_failed(failure, "")
    remedy = remedy_of(failure, {}, host="build-7", attach="`attach`")

    assert what
    assert remedy
    assert "{" not in remedy


def test_the_harnesss_own_words_stand_beside_ours_in_one_line() -> None:
    """What it says may be long, and in lines."""
    assert what_failed(Failure.LOGIN, "Not logged in\n· Please run /login").endswith(
        "(Not logged in · Please run /login)"
    )
    assert len(what_failed(Failure.OTHER, "x" * 9999)) < 400


def test_an_adapters_remedy_goes_before_ours() -> None:
    """Only it knows the command of its program."""
    remedies = {Failure.LOGIN: "on {host} run `claude`"}

    assert remedy_of(Failure.LOGIN, remedies, host="build-7", attach="") == "on build-7 run `claude`"
    assert remedy_of(Failure.SERVICE, remedies, host="build-7", attach="") == "try again in some minutes"
