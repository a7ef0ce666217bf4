"""A configuration that is not valid: every verb but stop refuses and names the key; what runs stays stoppable."""

import pytest

from tests.integration.hard.stage import at_once, declare, started
from tests.support.product import Product

VERBS = {
    "list": ("standing", "list"),
    "get": ("standing", "get", "work"),
    "start": ("standing", "start", "work"),
    "start all": ("standing", "start"),
    "restart": ("standing", "restart", "work"),
    "create": ("standing", "create", "extra"),
    "delete": ("standing", "delete", "work"),
    "say": ("standing", "say", "work", "--text", "hello"),
    "attach": ("standing", "attach", "work"),
    "screen": ("standing", "screen", "work"),
    "serve": ("serve",),
}
LIFECYCLE = ("start", "restart", "status")


@pytest.fixture
def broken(alone: Product) -> Product:
    """Give a product with a live session whose configuration was spoiled afterwards."""
    declare(alone, "work")
    started(alone, "work")
    alone.config.write_text(alone.config.read_text().replace("- name: work", "- autoStrat: true\n    name: work"))
    return alone


def test_every_verb_but_stop_names_the_key(broken: Product) -> None:
    """Exit 2 and the key with its line; nothing was done, and stop ends what runs."""
    pids = broken.panes()

    commands = [(*words, "--json") for words in VERBS.values()] + [(verb, "--json") for verb in LIFECYCLE]
    told = at_once(broken, commands)
    answers = dict(zip(VERBS, told[: len(VERBS)], strict=True))
    reports = dict(zip(LIFECYCLE, told[len(VERBS) :], strict=True))
    untouched = broken.panes()
    stopped = broken.cli("standing", "stop", "work", "--json")

    for verb, done in answers.items():
        assert (verb, done.code) == (verb, 2)
        assert done.json["error"]["code"] == "config_invalid"
        assert "standingSessions.sessions[0].autoStrat" in done.json["error"]["message"]
    for verb, done in reports.items():
        [row] = done.json["standingSessions"]
        assert (verb, done.code, row["outcome"]) == (verb, 1, "misconfigured")
        assert "autoStrat" in row["detail"]
    assert untouched == pids
    assert (stopped.code, stopped.row["outcome"]) == (0, "stopped")
    assert broken.panes() == {}
