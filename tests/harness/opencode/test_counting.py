"""What OpenCode's records say of its agent's work."""

import pytest

from tests.harness.counting import Counting
from tests.harness.opencode.product import KIT
from tests.harness.product import Kit


class TestOpenCodeTokens(Counting):
    """The numbers."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
