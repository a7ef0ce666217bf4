"""Gemini CLI in the cases that every harness runs."""

import pytest

from tests.harness.cases import Cases
from tests.harness.gemini.product import KIT
from tests.harness.product import Kit


class TestGemini(Cases):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """Gemini CLI."""
        return KIT
