"""What the command line says of itself: defaults, and why an option does not apply."""

import pytest

from core.cli.main import run
from tests.unit.cli.conftest import Terminal


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


VERBS = (
    ["status"],
    ["standing", "list"],
    ["standing", "get", "scribe"],
    ["events"],
    ["config", "path"],
    ["loop", "list"],
)


@pytest.mark.parametrize("place", ["before", "between", "behind"])
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_the_configuration_is_named_anywhere(terminal: Terminal, verb: list[str], place: str) -> None:
    """Before the verb, behind it, and between its words: it is the same file, and the same answer."""
    named = ["--config", str(terminal.config)]
    at = {"before": 0, "between": 1, "behind": len(verb)}[place]
    terminal.run(*verb, "--json")
    wanted = terminal.out

    run([*verb[:at], *named, *verb[at:], "--json"])

    assert terminal.capture()[0] == wanted


def test_an_error_names_its_commands_with_the_file_wherever_that_was_named(terminal: Terminal) -> None:
    """The remedy can be typed as it stands."""
    run(["standing", "get", "nobody", f"--config={terminal.config}"])

    assert f"--config {terminal.config} standing list" in terminal.capture()[1]


def test_the_last_that_is_named_counts(terminal: Terminal) -> None:
    """As with --json: what stands closest to the verb."""
    run(["--config", "/no/such/file", "config", "path", "--config", str(terminal.config)])

    out, err = terminal.capture()
    assert out == f"{terminal.config}\n"  # alone: a script takes it as it stands
    assert err == "(named by --config)\n"


@pytest.mark.parametrize("words", [("status",), ("standing", "stop"), ("config",), ("loop", "create")], ids=" ".join)
def test_help_of_every_verb_tells_of_them(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Whoever looks only there finds both."""
    terminal.run(*words, "--help")

    assert "--config" in terminal.out
    assert "--as-operator" in terminal.out


@pytest.mark.parametrize("group", [(), ("standing",), ("loop",), ("config",), ("slack",)], ids=" ".join)
def test_no_line_of_a_list_of_verbs_is_cut(terminal: Terminal, group: tuple[str, ...]) -> None:
    """Each verb's first sentence fits the line of a common terminal."""
    terminal.run(*group, "--help")

    verbs = terminal.out.partition("--help")[2]
    assert verbs
    assert "..." not in verbs
