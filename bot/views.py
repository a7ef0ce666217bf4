"""What one person alone is shown: rows and texts become blocks, with the text that stands for them. Pure.

Each function returns a Draft. It becomes a View only after secrets were removed from every text, before any is cut.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol

from bot.buttons import PREFIX, confirm_object, plain_text
from bot.markdown import dated, escape
from bot.payloads import COMMAND
from core.base.errors import nearest
from core.base.text import moment_text
from core.base.values import dataclass
from core.commandtable import Command
from core.model.asking import confirmation_of_all, confirmation_of_one
from core.model.channel import PrivateAnswer
from core.model.rows import concerns
from core.model.working import in_short

Row = Mapping[str, Any]
Block = dict[str, Any]

_SECTION = 2_900  #: characters of a section's text; Slack takes 3,000
_PAYLOAD = 12_000  #: characters of all blocks as JSON; above some 13,200 Slack answers msg_blocks_too_long
_CODE = 2_400  #: characters of a screen, before what is escaped in it
_USUAL_MODE = "default"  #: in which whoever may is asked in the thread
_FIELD = 200  #: characters that one value of a row may take


@dataclass(frozen=True)
class View:
    """A message: `text` is what notifications and plain clients show."""

    text: str
    blocks: tuple[Block, ...]


class Clean(Protocol):
    """Takes secrets out of a text; CoreDoor.shown is one."""

    def __call__(self, text: str, *, verbatim: bool = False) -> str:
        """Return the text as it may be shown; `verbatim`: nothing else is changed in it."""
        ...


Draft = Callable[[Clean], View]


def plain_view(text: str) -> Draft:
    """Return a message of one plain text."""

    def drawn(clean: Clean) -> View:
        shown = _ours(clean(text))
        return View(shown, (_section(shown),))

    return drawn


def _ours(text: str) -> str:
    """Return a text of ours as Slack shows it, each time in it as the reader's own."""
    shown = escape(cut(text, _SECTION // 2))
    ours = dated(shown)
    return ours if len(ours) <= _SECTION else shown


def refusal_view(what: str, member: str) -> Draft:
    """Return what somebody gets who may not do `what`, with the id that a list would name; nothing of the sessions."""
    known = f" Your member id is `{member}`." if member else ""
    return plain_view(f"You are not on the list of people who may {what} here.{known}")


def told_view(told: PrivateAnswer) -> Draft:
    """Return what core tells somebody; code is shown as it is, its beginning cut where it is too long."""
    if told.rows:
        return status_view(told.rows)
    if not told.code:
        return plain_view(told.text)

    def drawn(clean: Clean) -> View:
        text = _ours(clean(told.text))
        code = escape(clean(told.code, verbatim=True)[-_CODE:].replace("```", "'''"))
        return View(text, (_section(text), _section(f"```\n{code[-_SECTION + 10 :]}\n```")))

    return drawn


def picture_view(name: str, file_id: str) -> Draft:
    """Return what shows an uploaded picture to one person.

    https://docs.slack.dev/reference/block-kit/composition-objects/slack-file-object
    """
    image: Block = {"type": "image", "slack_file": {"id": file_id}, "alt_text": name}
    return lambda clean: View(name, (image,))


def help_view(unknown: str, commands: Sequence[Command]) -> Draft:
    """Return the commands that the caller may use; an unknown one is named."""

    def drawn(clean: Clean) -> View:
        lines = [f"`{COMMAND} {command.chat}`: {command.summary}" for command in commands]
        lines.append("To speak to a session, reply in its thread.")
        typed = escape(cut(f"{COMMAND} {clean(unknown)}".replace("`", ""), _FIELD))
        near = nearest(unknown, [command.word for command in commands], 1)
        meant = f"Did you mean `{COMMAND} {near[0]}`? " if near else ""
        named = f"There is no command `{typed}`. {meant}" if unknown else ""
        words = ", ".join(command.word for command in commands)
        whole = "\n".join([f"{named}These can be used:", *lines] if named else lines)
        return View(f"{named}Commands: {words}", (_section(whole),))

    return drawn


def direct_help(commands: Draft) -> Draft:
    """Return what the bot says to somebody who writes to it directly: what it understands here, then the commands."""

    def drawn(clean: Clean) -> View:
        here = "Here you can write `status` or `list`. Everything else is a slash command, in any channel:"
        view = commands(clean)
        return View(here, (_section(here), *view.blocks))

    return drawn


def status_view(rows: Sequence[Row]) -> Draft:
    """Return one line a session."""
    return _rows_view(rows, _status_line)


def list_view(rows: Sequence[Row]) -> Draft:
    """Return two lines a session."""
    return _rows_view(rows, _list_line)


def loops_view(rows: Sequence[Row]) -> Draft:
    """Return how many open loops each session has."""
    looping = [row for row in rows if row.get("loops")]
    if not looping:
        return plain_view("No session has an open loop.")
    return _lines_view(looping, _loops_line, _open_loops(sum(row["loops"] for row in looping)))


_MOST_CHOICES = 100  #: options of a select (https://docs.slack.dev/reference/block-kit/block-elements/select-menu)
WHICH, ALL = f"{PREFIX}which_", f"{PREFIX}all_"  #: how the ids begin of what asks to which session a verb is done


def which_view(verb: str) -> Callable[[Sequence[Row]], Draft]:
    """Return what asks to which session `stop` or `pause` is to be done, or whether to all."""

    def asking(rows: Sequence[Row]) -> Draft:
        names = [str(row["name"]) for row in rows if concerns(verb, row)]
        if not names:
            return plain_view(f"{verb}: there is no session to which that could be done.")
        return lambda clean: _which(verb, names, clean)

    return asking


def _which(verb: str, names: Sequence[str], clean: Clean) -> View:
    text = f"{verb.title()} which session?"
    if len(names) > _MOST_CHOICES:
        text += f" {len(names) - _MOST_CHOICES} are not in the list: type `{COMMAND} {verb} NAME`."
    select: Block = {
        "type": "static_select",
        "action_id": f"{WHICH}{verb}",
        "placeholder": plain_text("Choose a session", 150),
        "options": [{"text": plain_text(clean(name), 75), "value": name} for name in names[:_MOST_CHOICES]],
    }
    if asked := confirmation_of_one(verb):
        select["confirm"] = confirm_object(asked)
    every: Block = {
        "type": "button",
        "action_id": f"{ALL}{verb}",
        "text": plain_text(f"{verb.title()} all", 75),
        "style": "danger",
        "value": verb,
        "confirm": confirm_object(confirmation_of_all(verb, names)),
    }
    return View(text, (_section(text), {"type": "actions", "elements": [select, every]}))


def _loops_line(row: Row) -> str:
    name = _value(row, "name")
    return f"*{name}*: {_open_loops(row['loops'])}; `{COMMAND} loops {name}` shows them"


def _open_loops(count: int) -> str:
    return "1 open loop" if count == 1 else f"{count} open loops"


def _rows_view(rows: Sequence[Row], line: Callable[[Row], str]) -> Draft:
    if not rows:
        return plain_view("There are no standing sessions yet.")
    running = sum(1 for row in rows if row.get("running") is True)
    text = f"{running} of {len(rows)} sessions running"
    if len(rows) == 1:
        text = "1 session, running" if running else "1 session, not running"
    return _lines_view(rows, line, text)


def _lines_view(rows: Sequence[Row], line: Callable[[Row], str], text: str) -> Draft:
    def drawn(clean: Clean) -> View:
        lines = [
            dated(part)
            for host, here in groupby((_cleaned(row, clean) for row in rows), lambda row: _value(row, "host"))
            for part in _of_host(host, list(here), line)
        ]
        more = escape(clean("`the-loop standing list` shows all"))
        return View(text, (_section(f"*{text}*"), *_sections(lines, more)))

    return drawn


def _of_host(host: str, rows: Sequence[Row], line: Callable[[Row], str]) -> list[str]:
    """Return the lines of a host's sessions, in a fleet below one of its own; rows come by host."""
    lines = [line(row) for row in rows]
    if not host:
        return lines
    seen = _value(rows[0], "hostSeen")
    try:
        heard = f", last heard of at {moment_text(datetime.fromisoformat(seen))}" if seen else ""
    except ValueError:
        heard = ""
    running = sum(1 for row in rows if row.get("running") is True)
    return [f"*on {host}*: {running} of {len(rows)} running{heard}", *lines]


def _cleaned(row: Row, clean: Clean) -> Row:
    """Return the row with every text in it as it may be shown."""
    return {
        key: clean(value) if isinstance(value, str) else _cleaned(value, clean) if isinstance(value, Mapping) else value
        for key, value in row.items()
    }


def _sections(lines: Sequence[str], all_shown: str) -> list[Block]:
    """Return the lines in as many sections as they need; those beyond what one message holds are counted instead.

    `all_shown` says where all of them are.
    """
    blocks: list[Block] = []
    shown = 0
    for line in lines:
        grown = f"{blocks[-1]['text']['text']}\n{line}" if blocks else line
        fits = bool(blocks) and len(grown) <= _SECTION
        candidate = [*blocks[:-1], _section(grown)] if fits else [*blocks, _section(line)]
        if len(json.dumps(candidate)) > _PAYLOAD:
            break
        blocks, shown = candidate, shown + 1
    if shown < len(lines):
        blocks.append(_section(f"… and {len(lines) - shown} more: {all_shown}"))
    return blocks


def _status_line(row: Row) -> str:
    mark = "●" if row.get("running") is True else "○"
    queued = row.get("queued")
    parts = [f"{mark} *{_value(row, 'name')}* {_state(row)}"]
    if (mode := _value(row, "permissionMode")) and mode != _USUAL_MODE:
        parts.append(f"in {mode} mode")
    if row.get("hooks") == "silent":
        parts.append("hooks-silent")
    if isinstance(queued, int) and queued > 0:
        parts.append(f"{queued} queued")
    working = row.get("working")
    if isinstance(working, Mapping):
        parts += [escape(cut(part, _FIELD)) for part in in_short(working)]
    return ", ".join(parts)


def _state(row: Row) -> str:
    """Return why a session does not run, else what it does."""
    if _value(row, "phase") == "deleting":
        return "deleting"
    hold = row.get("hold")
    kind = hold.get("kind") if isinstance(hold, Mapping) else hold
    if isinstance(kind, str) and kind:
        reason = _value(hold, "reason") if isinstance(hold, Mapping) else ""
        return f"{escape(kind)} ({reason})" if reason else escape(kind)
    if row.get("running") is True:
        return _value(row, "activity") or "running"
    live = _value(row, "live")
    return live if live in ("unknown", "foreign", "dead") else _value(row, "status") or "not running"


def _list_line(row: Row) -> str:
    details = (
        ("harness", "harness"),
        ("in", "cwd"),
        ("outcome", "outcome"),
        ("because", "detail"),
    )
    named = [f"{label} {_value(row, key)}" for label, key in details if _value(row, key)]
    description = _value(row, "description")
    return "\n".join([_status_line(row), f"      {', '.join(named)}" + (f" ({description})" if description else "")])


def _value(row: Row, key: str) -> str:
    value = row.get(key)
    return escape(cut(" ".join(value.split()), _FIELD)) if isinstance(value, str) else ""


def cut(text: str, limit: int) -> str:
    """Return the text, or as much of its beginning as the limit allows."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _section(text: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}
