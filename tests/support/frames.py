"""Frames of messages as the search of a harness's records sees them."""

import re

_MARKER = re.compile(r"\[[^\[\]\n]{1,120} #([a-km-np-z2-9]{6})\]")


def markers_in(text: str) -> frozenset[str]:
    """Return the marker of everything in the text that reads as a frame of ours."""
    return frozenset(_MARKER.findall(text))
