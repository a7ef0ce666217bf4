"""Any order of verbs, messages, jobs, crashes between steps, killed agents and lost tmux servers is sound."""

import pytest
from hypothesis import HealthCheck, settings

from tests.integration.lifecycle.machine import Lifecycle

_SHORT = settings(max_examples=5, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
_LONG = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(600)  # sixty steps of real panes: a busy machine is slow, and each step has its own bounds
class TestLifecycle(Lifecycle.TestCase):  # type: ignore[misc, valid-type]
    """The short profile, in every run of the tests."""

    settings = _SHORT


@pytest.mark.long
@pytest.mark.timeout(1700)
class TestLifecycleAtLength(Lifecycle.TestCase):  # type: ignore[misc, valid-type]
    """The long profile."""

    settings = _LONG
