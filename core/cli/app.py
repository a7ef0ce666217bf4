"""The root command of the command line and its groups."""

import logging
from functools import partial

import click

from core.base.errors import InvalidValue
from core.cli import chat, checking, completing, configuring, fleet, lifecycle, setting_up, standing
from core.cli.building import Group, Handler, add_commands
from core.cli.printing import EXIT_USAGE, warn
from core.cli.session import Session, shared_options
from core.commandtable import CHATS, COMMANDS
from core.config.chats import has_setup
from core.process.logs import log_to_stderr

#: What the command line alone can do, or does in its own way. All else is run by its row.
HANDLERS: dict[str, Handler] = {
    "start": lifecycle.start,
    "stop": lifecycle.stop,
    "restart": lifecycle.restart,
    "status": lifecycle.status,
    "top": lifecycle.top,
    "doctor": checking.doctor,
    "completion": completing.completion,
    "serve": lifecycle.serve,
    "page": lifecycle.page,
    "demo": lifecycle.demo,
    "events": standing.events,
    "standing list": standing.list_all,
    "standing get": standing.get,
    "standing attach": standing.attach,
    "standing logs": standing.logs,
    "standing history": standing.history,
    "standing create": standing.create,
    "standing stop": standing.stop,
    "standing say": standing.say,
    "standing queue": standing.queue,
    "standing cancel": standing.cancel,
    "standing confirm": standing.confirm,
    "loop create": standing.create_loop,
    "post": standing.post,
    "ask": standing.ask,
    "mcp": standing.mcp,
    "config check": configuring.check,
    "config show": configuring.show,
    "config schema": configuring.schema,
    "config init": configuring.init,
    "config path": configuring.path,
    "fleet init": fleet.init,
    "fleet invite": fleet.invite,
    "fleet join": fleet.join,
    "fleet list": fleet.list_hosts,
    "fleet leave": fleet.leave,
    "fleet evict": fleet.evict,
    **{f"{kind} setup": partial(setting_up.setup, kind) for kind in CHATS if has_setup(kind)},
    **{f"{kind} manifest": partial(chat.manifest, kind) for kind in CHATS},
    **{f"{kind} check": partial(chat.check, kind) for kind in CHATS},
}


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="the-loop", prog_name="the-loop")
@shared_options
@click.pass_context
def root(context: click.Context) -> None:
    """Keeps named, long-lived agent sessions in tmux and puts each into a thread of your chat."""
    context.ensure_object(Session)


add_commands(root, COMMANDS, HANDLERS)


class BadUsage(InvalidValue):
    """The words of the command line are not understood."""

    code = "usage"

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message.rstrip("."), f"`{command} --help` tells what it takes")


def invoke(arguments: list[str]) -> int:
    """Run one command line, warnings going to standard error. Raises BadUsage for words that are no command of ours."""
    log_to_stderr(logging.WARNING)
    try:
        result = root.main(args=arguments, prog_name="the-loop", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        warn(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        asked = getattr(error, "ctx", None)
        raise BadUsage(error.format_message(), asked.command_path if asked else root.name or "") from error
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0
