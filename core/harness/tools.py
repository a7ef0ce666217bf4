"""Our tools for a harness that reads MCP servers from a file in the form of Claude Code."""

import json
from pathlib import Path

from core.domain.harness import SessionContext
from core.domain.tools import SERVER
from core.domain.toolspecs import EVERY_TOOL
from core.errors import TrustFailed
from core.harness.base import write_private

SERVERS = "mcp.json"


def install_tools(context: SessionContext) -> None:
    """Write the file that names the server. It holds no secret: the server reads the token from its own file.

    Raises TrustFailed.
    """
    command, *arguments = context.tool_server
    document = {"mcpServers": {SERVER: {"type": "stdio", "command": command, "args": arguments}}}
    try:
        write_private(servers_file(context), json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: the list of its tools cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error


def servers_file(context: SessionContext) -> Path:
    """Return that file."""
    return context.folder / SERVERS


def allowed_tools() -> list[str]:
    """Return the rules that let each of our tools run without a question, and nothing else."""
    return [f"mcp__{SERVER}__{spec.name}" for spec in EVERY_TOOL]
