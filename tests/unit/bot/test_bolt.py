"""Bolt is imported without the web server that it could be asked through."""

import subprocess
import sys

ASKED = """
import sys
import bot.channel
print("aiohttp.web" in sys.modules, "aiohttp.web_app" in sys.modules)
from aiohttp import web
print(web.Application().router is not None, web is sys.modules["aiohttp.web"])
"""
LOADED = """
from aiohttp import web
import bot.channel, aiohttp, sys
print(aiohttp.web is web, sys.modules["aiohttp.web"] is web)
"""


def _said(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_the_channel_loads_no_web_server_and_leaves_it_to_others() -> None:
    """The channel does without aiohttp's web server, and whoever imports it later gets the real one."""
    assert _said(ASKED) == ["False", "False", "True", "True"]


def test_a_web_server_that_is_loaded_already_stays() -> None:
    """Where another part of the process has the web server, Bolt takes that one."""
    assert _said(LOADED) == ["True", "True"]
