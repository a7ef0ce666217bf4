"""The page's files and headers, and who is known by a cookie. No request leaves this process."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from core.http.guard import Authenticator, Guard, TokenAuthenticator
from core.http.logins import Logins
from core.http.webpage import FILES, POLICY, PageAuthenticator, cookie_of, is_here, open_paths, paths_of_files
from tests.support.clocks import MovedClock
from tests.unit.http.test_guard import inner

OWN = [path for path in paths_of_files().values() if "vendor" not in path.parts]
PORT = 4114
VENDORED = {  # SHA-256 of the files of the npm package @xterm/xterm 6.0.0
    "xterm.mjs": "b336ec65a086c056d4804b3d4c2347da5663d3f23c3f25be866467bd8857ad59",
    "xterm.css": "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
}


def scope_of(
    headers: dict[str, str], path: str = "/api/v1/status", server: Any = ("127.0.0.1", PORT)
) -> dict[str, Any]:
    """Return what uvicorn gives for such a request."""
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "path": path, "server": server, "headers": pairs}


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    """Those of a service."""
    return Logins(tmp_path / "page-logins.json", MovedClock())


@pytest.fixture
def headers(logins: Logins) -> dict[str, str]:
    """What a browser sends that is logged in."""
    cookie, key = logins.login(logins.link())
    return {"host": f"127.0.0.1:{PORT}", "cookie": f"a=b; the_loop_{PORT}={cookie}", "x-the-loop-key": key}


def status(logins: Logins, scope: dict[str, Any]) -> int:
    """Return the status of the guard's refusal, 200 for a request that passes."""
    known: list[Authenticator] = [TokenAuthenticator("a-token", "http:ann"), PageAuthenticator(logins, "page:ann")]
    guard = Guard(inner, host="127.0.0.1", port=PORT, authenticators=known, open_paths=open_paths())
    refused = guard.refused(scope)
    return 200 if refused is None else refused.status_code


def test_a_browser_that_is_logged_in_passes(logins: Logins, headers: dict[str, str]) -> None:
    """By its cookie and its key together, and by neither alone."""
    without = [
        {name: value for name, value in headers.items() if name != left} for left in ("cookie", "x-the-loop-key")
    ]

    assert status(logins, scope_of(headers)) == 200
    assert [status(logins, scope_of(fewer)) for fewer in without] == [401, 401]


def test_another_origin_is_refused_in_spite_of_the_cookie(logins: Logins, headers: dict[str, str]) -> None:
    """Also a page of another port of this host, to which the browser gives the cookie."""
    origins = ["http://evil.example", f"http://127.0.0.1:{PORT + 1}", "null"]

    assert [status(logins, scope_of({**headers, "origin": origin})) for origin in origins] == [403, 403, 403]
    assert status(logins, scope_of({**headers, "origin": f"http://127.0.0.1:{PORT}"})) == 200


def test_the_page_is_for_this_machine_alone(logins: Logins, headers: dict[str, str]) -> None:
    """Nothing is encrypted: who reaches us from elsewhere is not known by a cookie; at the Unix socket one is."""
    assert not is_here(scope_of(headers, server=("192.0.2.7", PORT)))
    assert PageAuthenticator(logins, "page:ann").principal(scope_of(headers, server=("192.0.2.7", PORT))) is None
    assert PageAuthenticator(logins, "page:ann").principal(scope_of(headers, server=("/x/http.sock", None))) is not None


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:9", "[::1]:4114"])
def test_a_forwarded_unix_socket_is_called_by_names_of_loopback(
    logins: Logins, headers: dict[str, str], host: str
) -> None:
    """`ssh -L` gives it a port of another machine, which the browser names."""
    asked = {"host": host, "authorization": "Bearer a-token", "origin": f"http://{host}"}

    assert status(logins, scope_of(asked, server=("/x/http.sock", None))) == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "localhost:", "127.0.0.1:4114.evil"])
def test_by_any_other_name_it_is_not_reached(logins: Logins, host: str) -> None:
    """A page whose name was pointed at a forwarded port sends its own name."""
    asked = {"host": host, "authorization": "Bearer a-token"}

    assert status(logins, scope_of(asked, server=("/x/http.sock", None))) == 403


def test_files_are_open_and_data_is_not(logins: Logins) -> None:
    """Without a login there is the page itself, and nothing else of what it asks."""
    host = {"host": f"127.0.0.1:{PORT}"}

    assert {status(logins, scope_of(host, path)) for path in paths_of_files()} == {200}
    asked = ["/api/v1/status", "/page/screen", "/page/keys", "/page/logout", "/page/../local/api-token", "/metrics"]
    assert {status(logins, scope_of(host, path)) for path in asked} == {401}


def test_a_cookie_is_named_by_its_port() -> None:
    """Two services of one host do not log one another out."""
    cookies = "the_loop_4114=one; the_loop_8080=two; the_loop_80=three"

    found = [cookie_of(scope_of({"host": host, "cookie": cookies})) for host in ("localhost:4114", "[::1]:8080", "x")]

    assert found == ["one", "two", "three"]
    assert cookie_of(scope_of({"host": "localhost:1", "cookie": cookies})) is None
    assert cookie_of(scope_of({"host": "localhost:4114", "cookie": "the_loop_4114"})) is None


def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline() -> None:
    """Files of ours alone; no string becomes HTML (Trusted Types without a policy)."""
    parts = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))

    assert parts["default-src"] == "'none'"
    assert parts["frame-ancestors"] == "'none'"
    assert parts["require-trusted-types-for"] == "'script'"
    assert {parts[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_the_page_makes_no_html_of_strings_and_asks_nobody_else(path: Path) -> None:
    """What the policy forbids is not even tried; addresses of others are none."""
    text = path.read_text(encoding="utf-8")
    sinks = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|\bstyle=|<style|<script>"
    )

    assert re.findall(sinks, text) == []
    assert [found for found in re.findall(r"https?://[\w.]+", text) if found != "http://www.w3.org"] == []


def test_an_installation_has_every_file_of_the_page() -> None:
    """A wheel holds what pyproject.toml names: a file of a new folder would be missing from it."""
    pyproject = tomllib.loads((FILES.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = pyproject["tool"]["setuptools"]["package-data"]["core.http"]
    packed = {path for pattern in patterns for path in FILES.parent.glob(pattern)}

    assert {path for path in FILES.rglob("*") if path.is_file()} <= packed


@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_what_is_not_ours_is_as_its_authors_published_it(name: str, digest: str) -> None:
    """A change of it is a newer release, with its digests here and its number in ADR 0060, and never an edit."""
    assert hashlib.sha256((FILES / "vendor" / name).read_bytes()).hexdigest() == digest


def test_the_licence_of_what_is_not_ours_is_there() -> None:
    """xterm.js is MIT, which asks for its notice."""
    assert "The xterm.js authors" in (FILES / "vendor" / "xterm.LICENSE.txt").read_text(encoding="utf-8")
