"""How turns of real Codex end otherwise."""

import pytest

from tests.harness.codex.product import KIT
from tests.harness.endings import Endings
from tests.harness.product import Kit


class TestCodexEndings(Endings):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """The harness."""
        return KIT
