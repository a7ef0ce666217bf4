"""The built wheel works with nothing else, as `pipx install` and `uv tool install` have it."""

import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from core.config.loading import USUAL_DEMO
from core.http.webpage import paths_of_files
from embedded.demo import folder_of
from tests.e2e.test_demo import demo, run
from tests.support.product import Product, end_tmux, product
from tests.support.tmux import wait_until
from tests.support.wheel import build, copy_source, install, tracked
from tests.unit.test_house import version

pytestmark = pytest.mark.long  # test_house.py compares the requirements and the files at every run
PACKAGES = ("bot/", "core/", "embedded/")


@dataclass(frozen=True)
class Installed:
    """The wheel, and the program of the environment in which it alone is installed."""

    wheel: Path
    program: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel of what is checked out, and install it."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build(copy_source(folder / "source"), folder)
    return Installed(wheel, install(wheel, folder / "alone"))


@pytest.fixture(scope="module")
def away(installed: Installed) -> Iterator[Product]:
    """Give a product that runs the installed wheel."""
    with product(executable=installed.program) as running:
        yield running


def test_every_file_of_the_packages_is_inside(installed: Installed) -> None:
    """Scripts, pages and a terminal for the browser are data: setuptools leaves out what no pattern names."""
    inside = {name for name in zipfile.ZipFile(installed.wheel).namelist() if name.startswith(PACKAGES)}

    assert inside == {name for name in tracked() if name.startswith(PACKAGES)}


def test_it_is_the_wheel_that_runs(installed: Installed, away: Product) -> None:
    """No file of the checkout is imported, and the program tells its version."""
    python = installed.program.with_name("python")
    asked = [str(python), "-P", "-c", "import the_loop, core, bot, embedded; print(the_loop.__file__, core.__file__)"]
    places = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.split()

    assert all(Path(place).is_relative_to(installed.program.parents[1]) for place in places), places
    assert away.program(["--version"]).out.split()[-1] == version()


def test_the_doctor_finds_nothing_missing(away: Product) -> None:
    """The paste test runs a file of the package, too."""
    away.configure()

    done = away.cli("doctor", "--json")

    states = {finding["name"]: finding["state"] for finding in done.json["findings"]}
    assert {states[name] for name in ("python", "configuration", "permissions", "tmux", "pasting")} == {"ok"}, done.out


def test_the_demo_starts_and_its_page_is_served(away: Product) -> None:
    """The workspace's page, an agent that answers by its hooks' script, and the status of all of it."""
    socket = "the-loop-demo"
    try:
        with demo(away, folder_of(USUAL_DEMO, away.environ())) as running:
            said = run(away, running.command("speak to it"))
            with urlopen(running.workspace()["url"], timeout=30) as answer:
                page = answer.read().decode()
            wait_until(lambda: run(away, running.command("is it up?")).code == 0, "all of it is up")
            run(away, running.command("end it all"))
    finally:
        end_tmux(socket, away.environ())

    assert said.out.splitlines()[:1] == ["guide: confirmed"], said.err
    assert "app.js" in page


def test_the_service_has_its_page(away: Product) -> None:
    """Every file of it, the terminal's among them."""
    serving = away.serve()
    url = away.http_url()
    answers = {}
    for path in paths_of_files():
        try:
            with urlopen(url + path, timeout=30) as answer:
                answers[path] = (answer.status, bool(answer.read()))
        except HTTPError as error:
            answers[path] = (error.code, False)
    serving.stop()

    assert answers == dict.fromkeys(paths_of_files(), (200, True))
    assert "/page/vendor/xterm.mjs" in answers
