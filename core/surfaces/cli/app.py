"""The root command and its groups."""

from pathlib import Path

import click

from core.surfaces.cli.configuring import config_group
from core.surfaces.cli.demonstrating import demo_command
from core.surfaces.cli.lifecycle import restart_command, serve_command, start_command, status_command, stop_command
from core.surfaces.cli.observing import events_command
from core.surfaces.cli.session import Session
from core.surfaces.cli.slack import slack_group
from core.surfaces.cli.standing import standing_group


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="the-loop", prog_name="the-loop")
@click.option("--config", type=click.Path(path_type=Path), help="The configuration file; see `the-loop config path`.")
@click.option("--as-operator", is_flag=True, help="Inside a session: act as its operator. This is logged.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_context
def root(context: click.Context, config: Path | None, as_operator: bool, as_json: bool) -> None:
    """Keeps named, long-lived agent sessions in tmux and puts each into a Slack thread."""
    context.obj = Session(config=config, as_operator=as_operator, json=as_json)


for command in (
    standing_group,
    start_command,
    stop_command,
    restart_command,
    status_command,
    serve_command,
    demo_command,
    events_command,
    config_group,
    slack_group,
):
    root.add_command(command)


def invoke(arguments: list[str]) -> int:
    """Run one command line; click's own complaints about its words exit with 2."""
    try:
        result = root.main(args=arguments, prog_name="the-loop", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0
