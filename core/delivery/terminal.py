"""What a program's terminal does to what is typed into it before the program reads it."""

import os
import sys

CANONICAL_BYTES = (
    1023 if sys.platform == "darwin" else 4095
)  #: of a line; the kernel drops what follows, without a word


def line_limit(tty: str) -> int | None:
    """Return how many bytes of a line the terminal keeps for its program; None where the program reads each key itself.

    A program without a line editor leaves its terminal in canonical mode (termios(3)). Of a terminal that cannot be
    asked no more is relied upon.
    """
    import termios  # here, since most harnesses are never asked

    try:
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return CANONICAL_BYTES
    try:
        local_modes = termios.tcgetattr(descriptor)[3]
    except termios.error:
        return CANONICAL_BYTES
    finally:
        os.close(descriptor)
    return CANONICAL_BYTES if local_modes & termios.ICANON else None
