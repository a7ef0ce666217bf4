"""What programs write line by line, read while they do."""

import json
from pathlib import Path
from typing import Any


def entries(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one a line, none where there is no file.

    A line that has no end yet is still being written: whoever reads meanwhile may see the beginning of it.
    """
    try:
        whole = path.read_bytes().rpartition(b"\n")[0]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in whole.split(b"\n") if line]
