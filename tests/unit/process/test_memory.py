"""The service's threads share one heap of the C library's."""

import os
import subprocess
import sys

import pytest

#: Prints how many heaps glibc has after many threads have asked for more than Python's own pools give.
HEAPS = """
import ctypes, os, sys, threading
from core.process.itself import give_back, share_one_heap
if sys.argv[1] == "one":
    share_one_heap()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
meet = threading.Barrier(4)
def ask():
    meet.wait()
    for _ in range(100):
        library.malloc(2000)
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
give_back()
library.malloc_stats()
"""


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="another C library")
def test_threads_share_one_heap() -> None:
    """Each thread would get a heap of its own, nearly empty; told so, glibc gives all of them the one."""

    def heaps(how: str) -> int:
        command = [sys.executable, "-c", HEAPS, how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stderr.count("Arena ")

    assert heaps("one") == 1
    assert heaps("many") > 1
