"""`the-loop post`, `ask` and `mcp`: what an agent says in its own thread besides its answers, and its tools."""

from pathlib import Path

from core.errors import InvalidValue
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line
from core.surfaces.cli.reading import text_or_input
from core.surfaces.cli.session import Session


def post(session: Session, name: str, text: str, file: Path | None) -> int:
    """Run `the-loop post`."""
    from core.conversation.speaking import post as post_in_thread
    from core.conversation.speaking import redaction_told, speaker

    actor = session.acting(session.system)
    record = speaker(session.system, session.agent, name)
    content, files, agent = text_or_input(text), [file] if file else [], session.agent is not None
    said = post_in_thread(session.system, record, actor, content, files, agent=agent)
    redaction = redaction_told(said.redacted)
    if session.json:
        print_json({"name": record.name, "postId": said.post_id, **redaction})
    else:
        print_line("; ".join([f"{record.name}: posted ({said.post_id})", *([redaction["said"]] if redaction else [])]))
    return EXIT_OK


def ask(session: Session, name: str, question: str, options: tuple[str, ...], wait: float | None) -> int:
    """Run `the-loop ask`."""
    from core.conversation.speaking import ask as ask_in_thread
    from core.conversation.speaking import speaker

    session.acting(session.system)
    record = speaker(session.system, session.agent, name)
    answer = ask_in_thread(session.system, record, question, options, wait)
    if session.json:
        print_json({"name": record.name, **answer})
    else:
        print_line(answer["answer"])
    return EXIT_OK


def mcp(session: Session, token_file: str | None) -> int:
    """Run `the-loop mcp`."""
    from core.clients import toolbridge

    if not token_file:
        raise InvalidValue("no session's token is named", "run it inside a session, or give --token-file")
    return toolbridge.main([token_file])
