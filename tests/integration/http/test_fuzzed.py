"""The served API against docs/openapi.yaml: schemathesis asks what the file allows and what it does not.

No answer is a failure of the service's, each has a status, a media type and a form that the file names, and what the
file forbids is refused. What it allows is taken, but where JSON Schema cannot say all that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.http.rest import API, operations_of
from core.session.system import System
from tests.support.tmux import private_tmux
from tests.support.web import Web, serving
from tests.support.world import World

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema

ROOT = Path(__file__).parents[3]
OPERATIONS = sorted((one.method, f"{API}{one.path}") for one in operations_of())
#: A span or a cron expression, an absolute folder, one session where a conversation is chosen, a text that can be seen,
#: an answer that fits the request.
RULES = (
    "/loops/create",
    "/loops/schedule",
    "/create",
    "/start",
    "/say",
    "/control",
    "/requests/answer",
    "/post",
    "/ask",
)
KEY = "Idempotency-Key"
EXAMPLES = 20
SECONDS = 60


@pytest.fixture(scope="module")
def still() -> Iterator[System]:
    """Give ports of two declared sessions whose program is not installed: whatever is asked, nothing is started."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        declared = ("scribe", "scribe-two")
        world = World(folder, private.server.socket_name, private.folder, declared=declared, harness="missing")
        world.cwd.mkdir()
        plain = world.settings()
        system = world.system(plain._replace(service=plain.service._replace(port=0)))
        yield system
        system.close()


@pytest.fixture(scope="module")
def web(still: System) -> Iterator[Web]:
    """Give its API, which also listens at a port of the loopback."""
    with serving(still) as running:
        yield running


@cache
def _schema() -> BaseSchema:
    import schemathesis

    text = (ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    return schemathesis.openapi.from_dict(yaml.load(text, yaml.CSafeLoader))


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_it_answers_as_the_file_says(web: Web, method: str, path: str) -> None:
    """Whatever is sent, right or wrong."""
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    operation = _schema()[path][method]
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    headers = {"Authorization": f"Bearer {web.token}"}
    without: list[Any] = [positive_data_acceptance] if path.endswith(RULES) else []

    @settings(
        max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=st.one_of(right, wrong))
    def asks(case: Case[Any]) -> None:
        if re.fullmatch("[!-~]{1,255}", str(case.headers.get(KEY, ""))):
            case.headers[KEY] = uuid4().hex  # of another request's key another test tells
        response = case.call(base_url=web.url, headers=headers, timeout=SECONDS)
        case.validate_response(response, headers=headers, excluded_checks=without)

    asks()
