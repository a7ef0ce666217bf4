"""A real service, asked over HTTP."""

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.support.product import Product, product


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Return the body as a JSON value."""
        return json.loads(self.text)

    def samples(self) -> dict[str, float]:
        """Return each sample of a metrics page by its name and labels."""
        lines = (line for line in self.text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


class Web:
    """A client of the product's HTTP host."""

    def __init__(self, running: Product) -> None:
        self._product = running

    @property
    def product(self) -> Product:
        """Return the product whose host it is."""
        return self._product

    @property
    def url(self) -> str:
        """Return where the service listens, once it does."""
        return self._product.http_url()

    @property
    def token(self) -> str:
        """Return the token that was made."""
        return self._product.paths.api_token.read_text().strip()

    def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answered:
        """Ask with these headers alone (the client itself sends Host unless it is given)."""
        return self._asked(method, path, None, headers)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        """Send a body."""
        return self._asked("POST", path, body, headers)

    def _asked(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None) -> Answered:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.request(method, path, body, headers=dict(headers or {}))
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, headers, response.read().decode())
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return the samples of /metrics."""
        answered = self.get("/metrics", {"Authorization": f"Bearer {self.token}"})
        assert answered.status == 200, answered.text
        return answered.samples()


@pytest.fixture
def alone() -> Iterator[Product]:
    """Give a product without a channel."""
    with product() as running:
        yield running


@pytest.fixture
def talking() -> Iterator[Product]:
    """Give a product whose one session has a thread in a workspace."""
    with WorkspaceThread() as workspace, product(workspace) as running:
        yield running


@pytest.fixture(scope="module")
def served() -> Iterator[Web]:
    """Give a client of a service without a channel to all of a module's tests that only ask."""
    with product() as running:
        running.serve().wait_swept()
        yield Web(running)


@pytest.fixture
def web(alone: Product) -> Web:
    """Give a client of the product without a channel."""
    return Web(alone)
