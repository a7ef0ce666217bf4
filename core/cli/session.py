"""What every command shares: global options, the system it acts on, who acts, and the form of its answer."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from core.base.names import INSTANCE_VARIABLE
from core.base.paths import locate
from core.commandtable import Command
from core.config.settings import Settings
from core.model.session import ActorKind, require
from core.process.presence import user_name
from core.session.commands import exact
from core.session.system import System
from core.store.records import Records

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass
class Session:
    """One run of the command line."""

    config: Path | None = None
    as_operator: bool = False
    json: bool = False
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    command: Command = field(init=False)  #: the one that runs

    @cached_property
    def settings(self) -> Settings:
        """The validated configuration. Raises ConfigError."""
        from core.config.loading import load

        return load(self.config, self.environ)

    @cached_property
    def system(self) -> System:
        """The ports, wired for a command-line process. Raises ConfigError."""
        from core.service.wiring import build_system

        return build_system(self.settings, self.environ)

    def exact(self, text: str) -> str:
        """Return the text with each command that it names as it can be typed; the file itself is not read."""
        return exact(text, locate(self.config, self.environ).path, self.environ)

    @cached_property
    def instance(self) -> str | None:
        """The instance inside which this command runs, or None: then a person runs it."""
        return self.environ.get(INSTANCE_VARIABLE) or None

    def actor(self, system: System) -> str:
        """Return `cli:<user>`, or `agent:<name>` where the command runs inside a session of ours."""
        if self.agent is None:
            return f"cli:{user_name()}"
        return f"agent:{agent_name(system.records, self.agent)}"

    @property
    def agent(self) -> str | None:
        """The instance whose agent gives this command in its own name, or None."""
        return None if self.as_operator else self.instance

    def begin(self, command: Command) -> None:
        """Let the command run. Raises NotPermitted where an agent gives it in its own name and agents may not."""
        self.command = command
        if self.agent is not None and command.right is not None:
            require(ActorKind.AGENT, command.right)

    def acting(self, system: System) -> str:
        """Return the actor.

        An override is written to the event log; from then on the command outlives the terminal that it may be ending.
        """
        actor, right = self.actor(system), self.command.right
        if self.instance is not None and self.as_operator and right is not None:
            system.events.emit(
                "service.operator_override", level="warning", actor=actor, instance=self.instance, detail=right.value
            )
            signal.signal(signal.SIGHUP, lambda *_: None)  # a handler: what is ignored would be in what we start, too
        return actor


def agent_name(records: Records, instance: str) -> str:
    """Return the session whose latest instance this is; its id where no record carries it."""
    from core.model.session import SessionRecord

    for record in records.all():
        if isinstance(record, SessionRecord) and record.instance_id == instance:
            return record.name
    return instance


def shared_options(command: Decorated) -> Decorated:
    """Give a command or a group `--config`, `--as-operator`, `--format text|json` and `--json`.

    So they stand before the verb, behind it or between its words; of each the last one that is given counts.
    """

    def set_config(context: click.Context, _: click.Parameter, value: Path | None) -> None:
        if value is not None:
            context.ensure_object(Session).config = value

    def set_operator(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Session).as_operator = True

    def set_format(context: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.ensure_object(Session).json = value == "json"

    def set_json(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Session).json = True

    command = click.option(
        "--json", is_flag=True, expose_value=False, callback=set_json, help="Same as --format json."
    )(command)
    command = click.option(
        "--format",
        type=click.Choice(["text", "json"]),
        expose_value=False,
        callback=set_format,
        help="Output format. With json, standard output contains only JSON.",
    )(command)
    command = click.option(
        "--as-operator",
        is_flag=True,
        expose_value=False,
        callback=set_operator,
        help="Inside a session: act as its operator. This is logged.",
    )(command)
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=set_config,
        help="The configuration file; see `the-loop config path`.",
    )(command)
