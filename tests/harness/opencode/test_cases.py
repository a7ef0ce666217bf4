"""OpenCode in the cases that every harness runs."""

import pytest

from tests.harness.cases import Cases
from tests.harness.opencode.product import KIT
from tests.harness.product import Kit


class TestOpenCode(Cases):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """OpenCode."""
        return KIT
