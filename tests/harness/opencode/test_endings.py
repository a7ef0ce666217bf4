"""How turns of real OpenCode end otherwise."""

import pytest

from tests.harness.endings import Endings
from tests.harness.opencode.product import KIT
from tests.harness.product import Kit


class TestOpenCodeEndings(Endings):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
