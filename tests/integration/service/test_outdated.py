"""A service that runs with another configuration than its file holds by now: told, with what renews it."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import yaml

from tests.integration.service.test_hosting import UNIT, at_default_place, systemd
from tests.support.product import NAME, Product, end
from tests.support.tmux import wait_until

NEW = "newcomer"
SHELL = {"start": ["/bin/sh", "-c", "echo reading; cat"], "ready": "reading"}


def changed(alone: Product) -> dict[str, Any]:
    """Return the usual configuration with one more session, of a harness that the file declares."""
    standing = alone.document()["standingSessions"]
    newcomer = {"name": NEW, "harness": "shell", "autoStart": False}
    sessions = [*standing["sessions"], newcomer]
    return {
        **alone.document(),
        "harnesses": {"shell": SHELL},
        "standingSessions": {**standing, "sessions": sessions},
    }


def test_a_service_with_an_older_configuration_is_told_until_a_restart(alone: Product) -> None:
    """Status and start name the file and the remedy in the service's row, in both forms; nobody's health changes."""
    alone.cli("start")
    before = alone.cli("status", "--json")
    alone.configure(**changed(alone))

    status, started, text = alone.cli("status", "--json"), alone.cli("start", "--json"), alone.cli("status")
    alone.cli("restart")
    after = alone.cli("status", "--json")

    detail = status.services["service"]["detail"]
    assert (before.services["service"]["detail"], after.services["service"]["detail"]) == ("", "")
    assert f"differs from what {alone.config} holds now" in detail
    assert re.search(r"`[^`]*the-loop --config \S+ restart`", detail)
    assert started.services["service"]["detail"] == detail
    assert detail in text.out
    assert [done.code for done in (before, status, started, text, after)] == [0] * 5


def test_what_the_row_names_renews_the_service_alone(alone: Product) -> None:
    """After the signal and the start that it names a new service works by the file, and the panes are the old ones."""
    alone.cli("start")
    panes = alone.panes()
    alone.configure(**changed(alone))
    detail = alone.cli("status", "--json").services["service"]["detail"]

    [pid] = re.findall(r"`kill (\d+)`", detail)
    end(int(pid))
    renewed = alone.cli("start", "--json")

    assert (renewed.code, renewed.services["service"]["detail"]) == (0, "")
    assert renewed.services["service"]["pid"] != int(pid)
    assert alone.panes() == panes != {}


def test_a_service_of_a_unit_is_renewed_by_it(alone: Product) -> None:
    """Where the user's systemd runs it the row names its command, not a signal."""
    _, environ = systemd(alone, installed=True)
    at_default_place(alone)
    default = Path(alone.environ()["HOME"]) / ".config" / "the-loop" / "cli-config.yaml"
    alone.program(("start",), env=environ)
    default.write_text(yaml.safe_dump(changed(alone)))

    detail = alone.program(("status", "--json"), env=environ).services["service"]["detail"]
    alone.program(("stop",), env=environ)

    assert f"`systemctl --user restart {UNIT}`" in detail
    assert "kill" not in detail


def test_a_file_that_says_the_same_in_other_words_is_no_change(alone: Product) -> None:
    """A comment, another order, or a default that is written out asks nobody for a restart."""
    alone.cli("start")
    document = dict(reversed({**alone.document(), "limits": {"queuedPerSession": 100}}.items()))
    alone.configure("# looked at, and found good\n" + yaml.safe_dump(document, sort_keys=False))

    status = alone.cli("status", "--json")

    assert (status.code, status.services["service"]["detail"]) == (0, "")


def test_a_message_that_nobody_looked_at_is_told_with_where_to_look(alone: Product) -> None:
    """A service that has not got to it in the time that its sender waits leaves it queued, and the sender a reason."""
    service = alone.serve().wait_swept()
    # As it is stopped it is to hold no lock and to write nothing.
    wait_until(lambda: alone.cli("standing", "get", NAME, "--json").json["activity"] == "idle", "it is idle")
    os.kill(service.pid, signal.SIGSTOP)
    try:
        said = alone.cli("standing", "say", NAME, "--text", "anybody there?", "--wait", "0.5", "--json")
    finally:
        os.kill(service.pid, signal.SIGCONT)

    assert "messages" in said.json, said.json
    [told] = said.json["messages"]
    assert (said.code, said.json["state"]) == (0, "queued")
    assert "the service has not processed it yet" in told
    assert re.search(r"`[^`]*the-loop --config \S+ status`", told)
    assert str(alone.paths.service_log) in told
