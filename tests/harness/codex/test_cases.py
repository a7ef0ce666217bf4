"""Codex in the cases that every harness runs."""

import pytest

from tests.harness.cases import Cases
from tests.harness.codex.product import KIT
from tests.harness.product import Kit


class TestCodex(Cases):
    """The cases."""

    @pytest.fixture
    def kit(self) -> Kit:
        """Codex."""
        return KIT
