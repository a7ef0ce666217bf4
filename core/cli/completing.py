"""`the-loop completion SHELL`, and what completes the names of sessions. click writes the scripts."""

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, get_completion_class

from core.base.errors import CoreError
from core.base.paths import StatePaths
from core.cli.printing import EXIT_OK, print_json, print_line
from core.cli.session import Session
from core.store.records import Records

PROGRAM = "the-loop"
VARIABLE = "_THE_LOOP_COMPLETE"  #: click's: names what is completed, and for which shell
_INTO = {
    "bash": 'add it to ~/.bashrc: `eval "$(the-loop completion bash)"`',
    "zsh": 'add it to ~/.zshrc, behind compinit: `eval "$(the-loop completion zsh)"`',
    "fish": "write it to a file: `the-loop completion fish > ~/.config/fish/completions/the-loop.fish`",
}
SHELLS = tuple(_INTO)


def completion(session: Session, shell: str) -> int:
    """Run `the-loop completion`: print the script. It holds no name: those are asked for at each completion."""
    found = get_completion_class(shell)
    assert found is not None, f"click knows no {shell}"
    script = found(click.Group(), {}, PROGRAM, VARIABLE).source()
    if session.json:
        print_json({"shell": shell, "script": script})
    else:
        print_line(f"# To have it in every shell, {_INTO[shell]}")
        print_line(script.rstrip("\n"))
    return EXIT_OK


def complete_session(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of sessions that begin like the word, declared and recorded ones; none where nobody can tell."""
    session = context.find_object(Session)
    try:
        return [CompletionItem(name) for name in _names(session or Session()) if name.startswith(incomplete)]
    except CoreError:
        return []


def _names(session: Session) -> Sequence[str]:
    from core.config.loading import load_tolerant
    from core.session.sessions import names_of

    settings, _ = load_tolerant(session.config, session.environ)
    return names_of(settings, Records(StatePaths(settings.state_root)))
