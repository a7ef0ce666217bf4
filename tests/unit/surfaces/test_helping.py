"""What the command line says of itself: defaults, and why an option does not apply."""

import pytest

from tests.unit.surfaces.conftest import Terminal


@pytest.mark.parametrize(
    ("words", "default"),
    [(("standing", "say"), "30.0"), (("standing", "screen"), "50"), (("standing", "logs"), "50")],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_help_names_the_default(terminal: Terminal, words: tuple[str, ...], default: str) -> None:
    """Whoever does not give it knows what he gets."""
    terminal.run(*words, "--help")

    assert f"[default: {default}" in " ".join(terminal.out.split())


def test_a_url_is_refused_where_slack_is_given_none(terminal: Terminal) -> None:
    """Only with read.mode http does the manifest hold an address."""
    code = terminal.run("slack", "manifest", "--url", "https://loop.example.org")

    assert code == 2
    assert "read.mode" in terminal.err
