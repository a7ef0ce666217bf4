"""No command imports what lies in the folder where it is typed, whatever PYTHONPATH says of that folder."""

from collections.abc import Iterator

import pytest

from tests.support.product import Product, product
from tests.support.trees import lay_traps


@pytest.fixture(scope="module")
def alone() -> Iterator[Product]:
    """Give a product without a workspace."""
    with product() as running:
        yield running


@pytest.mark.parametrize("given", [":/opt/x", ".", "../work:", "{work}"])
@pytest.mark.parametrize("words", [("status",), ("config", "check"), ("standing", "list")], ids=" ".join)
def test_nothing_of_the_current_folder_is_imported(alone: Product, words: tuple[str, ...], given: str) -> None:
    """An empty or a relative entry stands for that folder, and so does its own path."""
    work = alone.folder / "work"
    mark = lay_traps(work, "click", "yaml", "cronsim", "bot.__init__", "argparse", "json", "pydantic.__init__")
    mark.unlink(missing_ok=True)

    done = alone.cli(*words, env={"PYTHONPATH": given.format(work=work)})

    assert not mark.exists()
    assert "Traceback" not in done.err
