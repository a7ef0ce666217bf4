"""The verb `interrupt` with real OpenCode."""

import pytest

from tests.harness.interrupting import Interrupting
from tests.harness.opencode.product import KIT
from tests.harness.product import Kit


class TestOpenCodeInterrupts(Interrupting):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
