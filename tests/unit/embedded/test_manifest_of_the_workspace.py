"""The workspace imports nothing of ours, so its own manifest is a copy where it says how a command goes on."""

from bot import manifest
from core.commandtable import COMMANDS
from embedded.workspace.model import DEFAULT


def test_the_hint_of_the_command_is_that_of_the_manifest() -> None:
    """What the page shows at a slash is what Slack would."""
    [command] = DEFAULT["features"]["slash_commands"]

    assert command["usage_hint"] == manifest.usage_hint(COMMANDS)
