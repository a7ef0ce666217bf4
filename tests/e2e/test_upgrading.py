"""What docs/upgrading.md tells to type works as it stands there: upgrade, backup and restore."""

import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from core.base.paths import StatePaths
from core.process.control import ask
from core.process.presence import running_service
from tests.support.product import NAME, Done, Product, product

PAGE = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text(encoding="utf-8")


def blocks(heading: str) -> list[str]:
    """Return the indented commands of a section, a text for each block."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"(?:^ {4,}(?![|\-]).+\n)+", section, flags=re.MULTILINE)
    assert found, heading
    return [textwrap.dedent(block) for block in found]


def at_home(running: Product) -> Product:
    """Give the product's files the places that they have by default."""
    home = running.folder / "home"
    running.paths = StatePaths(home / ".local" / "state" / "the-loop")
    running.config = home / ".config" / "the-loop" / "cli-config.yaml"
    return running


def typed(running: Product, block: str) -> Done:
    """Run a block as a shell would, which ends at the first command that fails."""
    done = subprocess.run(
        ["sh", "-e", "-c", block], env=running.environ(), cwd=running.folder / "work", stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def here() -> Iterator[Product]:
    """Give a product in its default places, whose service runs, and whose session has been spoken to."""
    with product() as running:
        at_home(running).config.parent.mkdir(parents=True)
        document = running.document()
        del document["state"]
        document["standingSessions"]["sessions"][0].update(cwd=str(running.folder / "work"))
        running.configure(yaml.safe_dump(document))
        assert running.cli("start").code == 0
        ask(running.paths.service_socket, "sweep", 30.0)
        said = running.cli("standing", "say", NAME, "--text", "before the copy")
        assert said.out.startswith(f"{NAME}: confirmed\n"), said.out + said.err
        yield running


@pytest.fixture
def there(here: Product) -> Iterator[Product]:
    """Give another home, without a state; its tmux server has the same name in another folder."""
    with product() as running:
        running.config.unlink()
        at_home(running).socket = here.socket
        yield running


def test_an_upgrade_ends_the_service_alone(here: Product) -> None:
    """The agent lives on, and the next service adopts it."""
    stop, start = blocks("Upgrade")
    service, panes = running_service(here.paths.service_lock), here.panes()

    stopped = typed(here, stop)
    between = running_service(here.paths.service_lock)
    started = typed(here, start)

    assert (stopped.code, between) == (0, None), stopped.err
    assert started.code == 0, started.out + started.err
    assert running_service(here.paths.service_lock) not in (None, service)
    assert here.panes() == panes


def test_a_copy_made_while_the_service_runs_is_restored_in_another_home(here: Product, there: Product) -> None:
    """The session is the same one, resumes the same conversation, and takes the next message."""
    [back_up] = blocks("Back up")
    restore, start = blocks("Restore")
    copied = typed(here, back_up)
    still = here.cli("status")
    old = here.record()
    assert here.cli("stop").code == 0
    (here.folder / "home" / "the-loop-backup").rename(there.folder / "home" / "the-loop-backup")

    restored = typed(there, restore)
    started = typed(there, start)
    said = there.cli("standing", "say", NAME, "--text", "after the restore")

    assert (copied.code, copied.out, still.code) == (0, "", 0), copied.err + still.out
    assert restored.code == 0, restored.err
    assert NAME in restored.out
    assert started.code == 0, started.out + started.err
    assert said.out.startswith(f"{NAME}: confirmed\n"), said.out + said.err
    assert (there.record()["uid"], there.record()["harnessSessionId"]) == (old["uid"], old["harnessSessionId"])
    assert (there.count("before the copy"), there.times("after the restore")) == (1, 1)


def test_the_copy_is_for_its_owner_alone(here: Product) -> None:
    """It holds tokens."""
    [back_up] = blocks("Back up")

    typed(here, back_up)

    folder = here.folder / "home" / "the-loop-backup"
    assert [path.name for path in (folder, *folder.iterdir()) if path.stat().st_mode & 0o077] == []
