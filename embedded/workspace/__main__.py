"""`python -m embedded.workspace`: the workspace as a process, until SIGINT, SIGTERM or the end of its parent."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedded.workspace.server import Workspace


class CannotServe(Exception):
    """The workspace cannot be opened; the message names the reason and the remedy."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 1 when it cannot listen, 2 for wrong arguments."""
    options = _options(argv)
    try:
        asyncio.run(serve(options))
    except CannotServe as error:
        sys.stderr.write(f"workspace: {error}\n")
        return 1
    return 0


async def serve(options: argparse.Namespace) -> None:
    """Serve until a signal or the parent's end ends it; the ready line is written once everything answers."""
    workspace = _opened(options)
    try:
        await workspace.start()
    except OSError as error:
        reason = f"cannot listen on port {options.port}: {error}; free it, or take another --port"
        raise CannotServe(reason) from error
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    if options.parent_fd is not None:
        asyncio.get_running_loop().add_reader(options.parent_fd, stopped.set)
    try:
        described = workspace.describe()
        if options.tokens_file:
            _write_private(options.tokens_file, described)
        ready = {key: described[key] for key in ("url", "api_url", "team_id", "channels", "users")}
        sys.stdout.write(json.dumps({"ready": True, **ready}) + "\n")
        sys.stdout.flush()
        await stopped.wait()
    finally:
        await workspace.stop()


def _opened(options: argparse.Namespace) -> Workspace:
    try:
        manifest = json.loads(options.manifest.read_text(encoding="utf-8")) if options.manifest else None
    except (OSError, ValueError) as error:
        raise CannotServe(f"cannot read the manifest {options.manifest}: {error}; it must be a JSON file") from error
    try:
        return Workspace(options.db, options.port, manifest, retry_scale=options.retry_scale, outsider=options.outsider)
    except (OSError, sqlite3.Error) as error:
        raise CannotServe(f"cannot open {options.db}: {error}; name a file in a folder that exists") from error


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m embedded.workspace",
        description="A Slack-compatible workspace on loopback. Prints one JSON line when it is ready.",
    )
    parser.add_argument("--db", type=Path, help="SQLite file that keeps everything (default: in memory)")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--manifest", type=Path, help="app manifest as JSON (default: a built-in one)")
    parser.add_argument("--tokens-file", type=Path, help="where addresses, tokens and ids are written, mode 0600")
    parser.add_argument("--parent-fd", type=int, help="read end of a pipe: at its end of file the workspace stops")
    parser.add_argument(
        "--outsider", action="store_true", help="share #agents with mallory of another organization (a new workspace)"
    )
    parser.add_argument("--retry-scale", type=float, default=1.0, help="factor on the minutes between event retries")
    return parser.parse_args(argv)


def _write_private(path: Path, document: dict[str, Any]) -> None:
    """Replace a file by one that only its owner can read."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=2)
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
