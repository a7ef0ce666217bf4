"""The program in the pane of `say_to_pane`: reads its terminal in raw mode and tells, by datagram, when it read what.

`reader.py SOCKET`: each read is one datagram of a time (nanoseconds of CLOCK_MONOTONIC, which all processes share)
and the bytes.
"""

import os
import socket
import sys
import time
import tty


def main(path: str) -> None:
    """Read until the terminal is gone."""
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.connect(path)
    tty.setraw(0)
    os.write(1, b"\x1b[?2004hREADY\r\n")
    while data := os.read(0, 65536):
        told.send(b"%d " % time.monotonic_ns() + data)


if __name__ == "__main__":
    main(sys.argv[1])
