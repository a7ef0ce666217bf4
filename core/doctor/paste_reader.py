"""The program of the scratch pane: reads its terminal in raw mode and writes what it gets to the file that is named.

It runs alone (`python -I -S paste_reader.py FILE`), with the standard library only.
"""

import os
import sys
import termios
import tty

if __name__ == "__main__":
    tty.setraw(0, termios.TCSANOW)
    received = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(1, b"\x1b[?2004hready\r\n")
    while data := os.read(0, 65536):
        os.write(received, data)
