"""The root command and its groups."""

import logging

import click

from core.errors import InvalidValue
from core.process.logs import log_to_stderr
from core.surfaces.cli.configuring import config_group
from core.surfaces.cli.demonstrating import demo_command
from core.surfaces.cli.lifecycle import restart_command, serve_command, start_command, status_command, stop_command
from core.surfaces.cli.loops import loop_group
from core.surfaces.cli.observing import events_command
from core.surfaces.cli.printing import EXIT_USAGE, warn
from core.surfaces.cli.session import Session, shared_options
from core.surfaces.cli.slack import slack_group
from core.surfaces.cli.speaking import ask_command, mcp_command, post_command
from core.surfaces.cli.standing import standing_group


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="the-loop", prog_name="the-loop")
@shared_options
@click.pass_context
def root(context: click.Context) -> None:
    """Keeps named, long-lived agent sessions in tmux and puts each into a Slack thread."""
    context.ensure_object(Session)


for command in (
    standing_group,
    loop_group,
    start_command,
    stop_command,
    restart_command,
    status_command,
    serve_command,
    demo_command,
    events_command,
    config_group,
    slack_group,
    post_command,
    ask_command,
    mcp_command,
):
    root.add_command(command)


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
