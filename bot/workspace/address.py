"""Where the workspace listens: known once it does, needed by every part that writes a link."""

from dataclasses import dataclass


@dataclass
class Address:
    """The base URL, without a slash at the end; "" until the workspace listens."""

    url: str = ""
