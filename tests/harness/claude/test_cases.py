"""Claude Code in the cases that every harness runs."""

import pytest

from tests.harness.cases import Cases
from tests.harness.claude.product import KIT
from tests.harness.product import Kit


class TestClaude(Cases):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """Claude Code."""
        return KIT
