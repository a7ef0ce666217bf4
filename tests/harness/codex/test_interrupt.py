"""The verb `interrupt` with real Codex."""

import pytest

from tests.harness.codex.product import KIT
from tests.harness.interrupting import Interrupting
from tests.harness.product import Kit


class TestCodexInterrupts(Interrupting):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
