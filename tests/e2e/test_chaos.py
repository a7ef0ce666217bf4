"""Everything fails at once, again and again, while people speak: nothing is lost, doubled, misrouted or disordered."""

import pytest

from tests.chaos.running import Plan, run


def test_what_people_say_meanwhile_arrives_once_and_in_order() -> None:
    """The short form: the same trouble each time, by its seed."""
    verdict, made = run(Plan(replies=200, seed=7, pause=0.5, settle_seconds=60))

    assert verdict.good, f"{verdict}\n{made}"


@pytest.mark.long
@pytest.mark.timeout(1700)
def test_two_thousand_replies_arrive_once_and_in_order() -> None:
    """The long form, with sockets that fall silent until the watchdog sees it."""
    verdict, made = run(Plan(replies=2000, seed=11))

    assert verdict.good, f"{verdict}\n{made}"
