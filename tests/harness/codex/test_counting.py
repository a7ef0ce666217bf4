"""What Codex's records say of its agent's work."""

import pytest

from tests.harness.codex.product import KIT
from tests.harness.counting import Counting
from tests.harness.product import Kit


class TestCodexTokens(Counting):
    """The numbers."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
