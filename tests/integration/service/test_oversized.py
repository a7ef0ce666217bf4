"""What one session's harness, or somebody by hand, makes too large to be read holds up that session alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.product import NAME, Product, bounded
from tests.support.tmux import wait_until

OTHER = "other"
HUGE = 6_000_000_000  #: bytes, of which none is written
MEMORY = "-v 4000000"  #: KiB of address space; the service needs a quarter of it


@pytest.fixture
def two(alone: Product) -> Product:
    """Give a product with two sessions."""
    sessions = [{"name": name, "prompt": "Look after it."} for name in (NAME, OTHER)]
    alone.configure(standingSessions={"enabled": True, "sessions": sessions})
    return alone


def report(product: Product) -> Path:
    """Return where a hook would report."""
    return product.paths.spool_of(product.record()["instanceId"]) / "1700000000000000000-1-Stop.json"


def conversation(product: Product) -> Path:
    """Return where the harness keeps the conversation."""
    record = product.record()
    return product.paths.session(record["uid"]) / f"agent/conversations/{record['harnessSessionId']}.jsonl"


def opinion(product: Product) -> Path:
    """Return the harness's status file."""
    pid = product.panes()[NAME]
    return product.paths.session(product.record()["uid"]) / f"agent/sessions/{pid}.json"


def record(product: Product) -> Path:
    """Return the session's record."""
    return product.paths.records / f"{NAME}.json"


@pytest.mark.parametrize("place", [report, conversation, opinion, record])
def test_a_huge_file_of_one_session_costs_the_others_nothing(two: Product, place: Callable[[Product], Path]) -> None:
    """The service lives, and so does the next one, which finds the file there at its start."""
    service = two.serve(within=bounded(MEMORY)).wait_swept()
    path = place(two)
    enlarge(path)
    two.cli("standing", "say", NAME, "--text", "hello", "--no-wait")
    first = two.cli("standing", "say", OTHER, "--text", "before", "--json").json["state"]
    ended = service.stop()
    enlarge(path)
    again = two.serve(within=bounded(MEMORY)).wait_swept()
    second = two.cli("standing", "say", OTHER, "--text", "after", "--json").json["state"]

    assert (first, ended, second, again.stop()) == ("confirmed", 0, "confirmed", 0)
    assert "worker failed" not in service.output() + again.output()


def enlarge(path: Path) -> None:
    """Make a file of that size, of which the disk holds little, and let the service know."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, HUGE)


def test_a_huge_report_is_put_aside_and_told(two: Product) -> None:
    """With its size as the reason; what came after it is read."""
    two.serve(within=bounded(MEMORY)).wait_swept()
    path = report(two)
    enlarge(path)

    said = two.cli("standing", "say", NAME, "--text", "hello", "--json").json["state"]

    wait_until(lambda: not path.exists(), "it is put aside")
    [told] = [event for event in two.events("standing.suppressed") if path.name in str(event["detail"])]
    assert said == "confirmed"
    assert "more than" in told["reason"]
    assert (path.parent / "bad" / path.name).stat().st_size == HUGE


def test_a_huge_configuration_is_refused_and_named(alone: Product) -> None:
    """By every command, before it is read."""
    os.truncate(alone.config, HUGE)

    done = alone.cli("standing", "list")

    assert done.code == 2
    assert str(alone.config) in done.err
    assert "more than" in done.err
