"""A way for TCP between a client and a server on this machine, which can be slowed, held and cut."""

import socket
import struct
import threading
import time
from contextlib import suppress

_PIECE = 1 << 16


class SocketRelay:
    """Listens on `port` of loopback and passes bytes to the server's port, both ways, until it is closed.

    What is held back passes once it is let go, as it does after a network was away for a while: no byte is lost while a
    connection lives. `delay`: seconds that each piece takes longer, each way.
    """

    def __init__(self, to: int) -> None:
        self.delay = 0.0
        self._to = to
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Pass nothing, the ends of connections included, and tell nobody."""
        self._flows.clear()

    def let_go(self) -> None:
        """Pass everything again, first what was held."""
        self._flows.set()

    def cut(self) -> None:
        """Reset every connection. New ones may be made at once."""
        with self._lock:
            found = list(self._open)
        for one in found:
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all of it."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.let_go()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to), timeout=5)
            except OSError:  # no server listens, which the client sees as the end of its connection
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._open |= {near, far}
            left = [2]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(*pair, left), daemon=True).start()

    def _pass(self, of: socket.socket, to: socket.socket, left: list[int]) -> None:
        try:
            while data := of.recv(_PIECE):
                if self.delay:
                    time.sleep(self.delay)
                self._flows.wait()
                to.sendall(data)
        except OSError:
            pass  # one end is gone: the other one is told below
        self._flows.wait()
        with suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)
        with self._lock:
            left[0] -= 1
            ended = left[0] == 0
            if ended:
                self._open -= {of, to}
        if ended:
            of.close()
            to.close()
