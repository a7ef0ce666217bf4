"""What Gemini's records say of its agent's work."""

import pytest

from tests.harness.counting import Counting
from tests.harness.gemini.product import KIT
from tests.harness.product import Kit


class TestGeminiTokens(Counting):
    """The numbers."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
