"""The packages of deploy/ are built, and what they install runs; the container's program ends agents gently."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from core.process.control import ask
from core.process.presence import running_service
from tests.e2e.test_upgrading import at_home
from tests.support.product import NAME, Product
from tests.support.tmux import PATIENCE, alive, wait_until
from tests.support.wheel import ROOT, build, copy_source, install
from tests.unit.test_house import version

pytestmark = pytest.mark.long
DEPLOY = ROOT / "deploy"
SYSTEM = Path("/usr/bin/python3")


def asked(*words: str | Path, seconds: float = 120.0) -> str:
    """Run a program and return what it printed; it must succeed."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_debian_package_is_built_and_its_program_runs(tmp_path: Path) -> None:
    """With the system's Python, from the folder into which dpkg unpacks it."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed")
    install(build(copy_source(tmp_path / "source"), tmp_path), tmp_path / "environment")

    package = asked("sh", DEPLOY / "debian" / "build.sh", tmp_path / "environment", tmp_path).strip()
    asked("dpkg-deb", "-x", package, tmp_path / "unpacked")

    home = tmp_path / "unpacked" / "usr" / "lib" / "the-loop"
    units = tmp_path / "unpacked" / "usr" / "lib" / "systemd" / "user"
    assert asked("dpkg-deb", "-f", package, "Package", "Version").split() == [
        "Package:", "the-loop", "Version:", version(),
    ]  # fmt: skip
    assert os.readlink(tmp_path / "unpacked" / "usr" / "bin" / "the-loop") == "../lib/the-loop/bin/the-loop"
    assert all("ExecStart=/usr/bin/the-loop " in unit.read_text() for unit in units.iterdir())
    assert {unit.name for unit in units.iterdir()} == {path.name for path in (DEPLOY / "systemd").iterdir()}
    minor = "import sys; print(*sys.version_info[:2])"
    if not SYSTEM.exists() or asked(SYSTEM, "-c", minor) != asked(sys.executable, "-c", minor):
        pytest.skip(f"{SYSTEM} is not the Python for which the compiled modules are")
    printed = asked(home / "bin" / "python", "-I", "-c", "import core; print(core.__file__)")
    assert Path(printed.strip()).is_relative_to(home)
    assert version() in asked(home / "bin" / "python", "-I", "-m", "core.cli", "--version")


def test_the_image_is_built_and_its_program_runs() -> None:
    """Where a Docker daemon answers."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False).returncode != 0
    ):
        pytest.skip("no Docker daemon answers")
    dockerfile = DEPLOY / "container" / "Dockerfile"
    image = asked("docker", "build", "--quiet", "-f", dockerfile, ROOT, seconds=900.0).strip()

    assert version() in asked("docker", "run", "--rm", "--entrypoint", "the-loop", image, "--version")
    assert asked("docker", "run", "--rm", "--entrypoint", "id", image, "-un").strip() == "loop"


def test_the_end_of_the_container_ends_the_agents_first(alone: Product) -> None:
    """Its program gets one SIGTERM: the sessions are stopped gently, then the service; the code is the service's."""
    at_home(alone).config.parent.mkdir(parents=True)
    document = alone.document()
    del document["state"]
    alone.configure(yaml.safe_dump(document))
    output = (alone.folder / "output").open("wb")
    with output:
        container = subprocess.Popen(
            ["sh", str(DEPLOY / "container" / "entrypoint.sh")], env=alone.environ(), cwd=alone.folder / "work",
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(
            lambda: (pid := running_service(alone.paths.service_lock)) is not None and alone.answers(pid), "it answers"
        )
        ask(alone.paths.service_socket, "sweep", PATIENCE)
        panes = alone.panes()
        container.send_signal(signal.SIGTERM)
        code = container.wait(2 * PATIENCE)
    finally:
        if container.poll() is None:
            container.kill()
            container.wait(10)

    assert code == 0, (alone.folder / "output").read_text()
    assert list(panes) == [NAME]
    assert not alive(panes[NAME])
    assert [event["name"] for event in alone.events("standing.stopped")] == [NAME]
