"""The verb `interrupt` with real Gemini CLI."""

import pytest

from tests.harness.gemini.product import KIT
from tests.harness.interrupting import Interrupting
from tests.harness.product import Kit


class TestGeminiInterrupts(Interrupting):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
