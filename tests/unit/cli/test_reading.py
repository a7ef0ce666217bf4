"""Where a command takes a text from."""

import io
from pathlib import Path

import pytest

from core.cli.reading import message_of


@pytest.mark.parametrize(("source", "file"), [("-", None), (None, Path("-"))])
def test_a_dash_is_standard_input_by_itself_and_as_a_file(
    monkeypatch: pytest.MonkeyPatch, source: str | None, file: Path | None
) -> None:
    """As most programs have it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("hällo".encode())))

    assert message_of(source, None, file) == "hällo"
