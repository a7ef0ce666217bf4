"""Hosts, gateways, the database and the lines fail again and again while people speak to a fleet's sessions."""

import pytest

from tests.chaos.fleet import Plan, run
from tests.support.postgres import Cluster


def test_what_people_say_to_a_fleet_meanwhile_arrives_once_and_in_order(fleet_cluster: Cluster) -> None:
    """The short form: the same trouble each time, by its seed."""
    verdict, made = run(Plan(hosts=3, sessions=3, people=2, replies=20, seed=2452, pause=0.6), fleet_cluster)

    assert verdict.good, f"{verdict}\n{made}"
    assert sum(made.values()) > 2, made


@pytest.mark.long
@pytest.mark.timeout(1700)
@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_replies_to_fifty_sessions_arrive_once_and_in_order(fleet_cluster: Cluster, seed: int) -> None:
    """The long form, with trouble that outlasts a gateway's lease."""
    verdict, made = run(Plan(seed=seed), fleet_cluster)

    assert verdict.good, f"{verdict}\n{made}"
