"""Claude Code keeps the contract of the hooked harnesses, and what only it can break."""

from tests.integration.harness.contract import HookedHarnessContract


class TestClaude(HookedHarnessContract):
    """The contract."""
