"""An MCP server as an operator may have one: a single tool, `whisper`, on standard input and output."""

import json
import sys

TOOL = {"name": "whisper", "description": "Whisper.", "inputSchema": {"type": "object", "properties": {}}}


def main() -> None:
    """Answer each request."""
    for line in sys.stdin:
        request = json.loads(line)
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "mine", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "psst"}]},
        }
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results.get(request["method"], {})}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
