"""What an agent is doing, wherever it is shown: the row, the text, the events, the metrics."""

from tests.integration.http.conftest import Web
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

TURN = 30.0


def test_a_plan_and_what_was_used_are_shown_everywhere(alone: Product, web: Web) -> None:
    """The bundled agent counts words, and writes them down as others write tokens down."""
    alone.serve().wait_swept()
    alone.cli("standing", "say", NAME, "--text", "plan read the code | change it")

    def working() -> dict[str, object]:
        found = alone.cli("standing", "get", NAME, "--json").json["working"]
        return found if isinstance(found, dict) else {}

    wait_until(lambda: str(working().get("plan")).count("done") == 2, "the plan is done", TURN)
    told = working()
    usage = told["usage"]
    assert isinstance(usage, dict)
    [row] = alone.cli("standing", "list", "--json").json
    text = alone.cli("standing", "get", NAME).out
    wait_until(lambda: web.metrics()['the_loop_scrape_ok{part="tokens"}'] == 1, "it could be asked")
    samples = web.metrics()
    sample = f'the_loop_tokens_total{{kind="output",model="bundled",session="{NAME}"}}'

    assert told["plan"] == [{"text": "read the code", "state": "done"}, {"text": "change it", "state": "done"}]
    assert (told["tool"], told["model"]) == ("", "bundled")
    assert row["working"] == told
    assert "2 of 2 done; [x] read the code; [x] change it" in text
    assert samples[sample] == usage["session"]["output"] > 0
    assert alone.events("standing.plan")
    assert alone.events("standing.usage")
