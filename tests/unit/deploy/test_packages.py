"""The definitions of packages, of the container's image and of launchd's service agree with the product."""

import json
import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from core.base import files
from core.cli.app import root
from core.service.service import STOP_SECONDS
from tests.unit.test_house import version

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "container" / "Dockerfile").read_text(encoding="utf-8")
FORMULA = DEPLOY / "homebrew" / "the-loop.rb"


def checked(*words: str) -> None:
    """Run a program's own check of a file, which must find nothing; skip, by name, where the program is not there."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions and their words, continued lines as one."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).splitlines()
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


def of(kind: str) -> list[str]:
    """Return the words of each instruction of that kind."""
    return [words for name, words in instructions() if name == kind]


def test_the_image_runs_the_service_as_nobodys_root_with_its_volumes() -> None:
    """The user is set before the volumes are used, and what must outlive the container is a volume."""
    home = "/home/loop"

    assert of("USER") == ["loop"]
    assert json.loads(of("VOLUME")[0]) == [f"{home}/.config/the-loop", f"{home}/.local/state/the-loop", "/work"]
    assert {"tmux", "git", "procps", "tini"} <= set(" ".join(of("RUN")).split())
    assert [word for word in of("ENV")[0].split() if word.startswith("LANG=")] == ["LANG=C.UTF-8"]


def test_the_image_names_no_registry_and_pins_what_it_installs() -> None:
    """The base image by its name alone; packages of Python by their hashes, ours without what is not pinned."""
    installs = [part for part in " && ".join(of("RUN")).split("&&") if "pip install" in part]

    assert all(re.fullmatch(r"[a-z]+:[\w.-]+( AS \w+)?", words) for words in of("FROM"))
    assert "://" not in DOCKERFILE
    assert ["--require-hashes" in part or "--no-deps" in part for part in installs] == [True, True]


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    """Of the checkout; the other stage's files come from that stage."""
    sources = [word.rstrip("/") for words in of("COPY") if "--from" not in words for word in words.split()[:-1]]
    sources = [word for word in sources if not word.startswith("--")]
    allowed = (DEPLOY / "container" / "Dockerfile.dockerignore").read_text().splitlines()

    assert [name for name in sources if not (ROOT / name).exists()] == []
    assert [name for name in sources if f"!{name}" not in allowed] == []


def test_launchd_gives_the_service_its_files_and_its_time() -> None:
    """Else 256 open files for all agents together, and a kill within the service's own end."""
    [path] = (DEPLOY / "launchd").glob("*.plist")
    service = plistlib.loads(path.read_bytes())

    assert path.name == f"{service['Label']}.plist"
    assert service["ProgramArguments"] == ["HOME/.local/bin/the-loop", "serve"]
    assert service["ProgramArguments"][1] in root.commands
    assert service["SoftResourceLimits"]["NumberOfFiles"] == files.WANTED
    assert service["HardResourceLimits"]["NumberOfFiles"] >= files.WANTED
    assert service["ExitTimeOut"] > STOP_SECONDS
    assert service["AbandonProcessGroup"] is True
    assert service["KeepAlive"] == {"SuccessfulExit": False}
    assert service["Umask"] == 0o077
    assert all("THE_LOOP" not in name for name in service["EnvironmentVariables"])


def test_launchd_understands_the_file() -> None:
    """By its own check, on macOS."""
    checked("plutil", "-lint", *map(str, (DEPLOY / "launchd").glob("*.plist")))


def test_the_formula_is_of_this_version_and_names_files_that_are_there() -> None:
    """It installs what is pinned, and needs tmux."""
    text = FORMULA.read_text(encoding="utf-8")

    assert f'version "{version()}"' in text
    assert f"the-loop-{version()}.tar.gz" in text
    assert 'depends_on "tmux"' in text
    named = re.findall(r'"(requirements/[\w.]+)"', text)
    assert named == ["requirements/build.txt", "requirements/run.txt"]
    assert all((ROOT / name).exists() for name in named)


def test_ruby_understands_the_formula() -> None:
    """Its syntax, where Ruby is installed."""
    checked("ruby", "-c", str(FORMULA))


@pytest.mark.parametrize("script", ["debian/build.sh", "container/entrypoint.sh"])
def test_a_shell_understands_the_scripts(script: str) -> None:
    """Without running them."""
    checked("sh", "-n", str(DEPLOY / script))


def test_the_debian_package_says_what_it_needs() -> None:
    """Each field on a line of its own, a description that goes on in indented lines."""
    text = (DEPLOY / "debian" / "control").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([A-Z][\w-]+): (.+)$", text, flags=re.MULTILINE))

    assert {"Package", "Version", "Architecture", "Maintainer", "Description"} <= fields.keys()
    assert fields["Package"] == "the-loop"
    assert "tmux (>= 3.2)" in fields["Depends"]
    assert [line for line in text.splitlines() if not re.match(r"[A-Z][\w-]+: \S| \S", line)] == []
