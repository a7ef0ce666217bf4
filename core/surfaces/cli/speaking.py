"""`the-loop post`, `ask` and `mcp`: what an agent says in its own thread besides its answers, and its tools."""

from pathlib import Path

import click

from core.domain.rights import Verb
from core.errors import InvalidValue
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line
from core.surfaces.cli.quick import TOKEN_VARIABLE
from core.surfaces.cli.reading import text_or_input
from core.surfaces.cli.session import Session, shared_options


@click.command("post")
@click.argument("name", default="")
@click.option("--text", default="", help="Markdown; `-` reads standard input.")
@click.option("--file", type=click.Path(path_type=Path), help="A file to attach; an agent's lies in its own folder.")
@shared_options
@click.pass_obj
def post_command(session: Session, name: str, text: str, file: Path | None) -> int:
    """Post into a session's thread. An agent posts into its own, so that it leaves NAME out."""
    from core.conversation.speaking import post, redaction_told, speaker

    actor = session.permit(session.system, Verb.POST)
    agent = None if session.as_operator else session.instance
    record = speaker(session.system, agent, name)
    said = post(session.system, record, actor, text_or_input(text), [file] if file else [], agent=agent is not None)
    redaction = redaction_told(said.redacted)
    if session.json:
        print_json({"name": record.name, "postId": said.post_id, **redaction})
    else:
        print_line("; ".join([f"{record.name}: posted ({said.post_id})", *([redaction["said"]] if redaction else [])]))
    return EXIT_OK


@click.command("ask")
@click.argument("name", default="")
@click.option("--question", required=True)
@click.option("--option", "options", multiple=True, help="An answer to choose; may be repeated.")
@click.option("--wait", type=click.FloatRange(1), help="Seconds; default, and most: limits.approvalWaitSeconds.")
@shared_options
@click.pass_obj
def ask_command(session: Session, name: str, question: str, options: tuple[str, ...], wait: float | None) -> int:
    """Ask the people of a session's thread, and print the answer. Exit 1 if nobody answers."""
    from core.conversation.speaking import ask, speaker

    session.permit(session.system, Verb.ASK)
    record = speaker(session.system, None if session.as_operator else session.instance, name)
    answer = ask(session.system, record, question, options, wait)
    if session.json:
        print_json({"name": record.name, **answer})
    else:
        print_line(answer["answer"])
    return EXIT_OK


@click.command("mcp")
@click.option(
    "--token-file",
    envvar=TOKEN_VARIABLE,
    help=f"The file `mcp-token` of the session; default: ${TOKEN_VARIABLE}, which every session of ours has.",
)
def mcp_command(token_file: str | None) -> int:
    """Serve a session's tools (MCP) on standard input and output. A harness runs it inside the session."""
    from core.clients import toolbridge

    if not token_file:
        raise InvalidValue("no session's token is named", "run it inside a session, or give --token-file")
    return toolbridge.main([token_file])
