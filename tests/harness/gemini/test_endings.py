"""How turns of real Gemini CLI end otherwise."""

import pytest

from tests.harness.endings import Endings
from tests.harness.gemini.product import KIT
from tests.harness.product import Kit


class TestGeminiEndings(Endings):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
