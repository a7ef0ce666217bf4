"""A channel's own block: read by the channel's own model, with errors reported like those of the rest of the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.base.paths import Location
from core.base.plugins import entry_points
from core.config.blocks import ThreadBlock
from core.config.chats import GROUP, ChannelBroken, chat_info, installed_kinds, load_part
from core.config.checks import add_schema_problems
from core.config.document import ConfigError, Document, Problem, in_order, read_document, shortened
from core.config.loading import read_text

Model = TypeVar("Model", bound=BaseModel)


def channel_settings(raw: Mapping[str, Any], model: type[Model], *, name: str, source: Path | None = None) -> Model:
    """Return the channel's settings from the raw block `channels.<name>` (`ChannelBlock.raw`).

    `source` is the file that the block came from (`Settings.source`), for the lines of problems.
    Raises ConfigError with everything that the model finds wrong.
    """
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        raise ConfigError(_problems(error, model, name, source)) from error


def channel_problems(
    raw: Mapping[str, Any], model: type[BaseModel], *, name: str, source: Path | None
) -> tuple[Problem, ...]:
    """Return what the channel's model finds wrong with its block; empty where nothing is."""
    try:
        channel_settings(raw, model, name=name, source=source)
    except ConfigError as error:
        return error.problems
    return ()


def unknown_channel(name: str, models: Mapping[str, type[BaseModel]], source: Path | None) -> Problem:
    """Return the problem of a block for a channel that is not installed."""
    document = _document(source)
    allowed = "one of " + ", ".join(sorted(models)) if models else "no block: no channel is installed"
    remedy = "install the package that brings this channel, or remove the block"
    document.add(("channels", name), f"the channel `{shortened(name)}`, which is not installed", allowed, remedy)
    return document.problems[0]


def blocks_of(source: Path) -> dict[str, Mapping[str, Any]]:
    """Return the channels' blocks of a file that is wrong elsewhere, as far as it can be read and they are mappings."""
    channels = _document(source).data.get("channels")
    if not isinstance(channels, dict):
        return {}
    return {name: raw for name, raw in channels.items() if isinstance(raw, dict)}


def installed_models() -> dict[str, type[BaseModel]]:
    """Return the settings model of each installed channel by name: the `settings_model` of what its entry point names.

    Raises ChannelBroken where one cannot be imported or has none.
    """
    models = {}
    for kind, target in entry_points(GROUP).items():
        model: type[BaseModel] | None = getattr(load_part(kind, target), "settings_model", None)
        if model is None:
            raise ChannelBroken(kind, target, "it has no settings_model")
        models[kind] = model
    return models


def thread_models() -> dict[str, type[ThreadBlock]]:
    """Return the model of a session's block for each installed chat, by its kind. Imports no channel.

    Raises ChannelBroken.
    """
    models: dict[str, type[ThreadBlock]] = {}
    for kind in installed_kinds():
        target = chat_info(kind).session
        found = load_part(kind, target) if target else ThreadBlock
        if not (isinstance(found, type) and issubclass(found, ThreadBlock)):
            raise ChannelBroken(kind, target, "it is no ThreadBlock")
        models[kind] = found
    return models


def _problems(error: ValidationError, model: type[BaseModel], name: str, source: Path | None) -> tuple[Problem, ...]:
    base = ("channels", name)
    document = _document(source)
    add_schema_problems(document, error, model, base)
    return in_order(document.problems)


def _document(source: Path | None) -> Document:
    """Return the document with its lines; without them where there is no file or it is gone meanwhile."""
    if source is None:
        return Document("(no file)")
    try:
        text = read_text(Location(source, "the file that was loaded", named=True)) or ""
    except ConfigError:
        return Document(str(source))
    document = read_document(text, str(source))
    document.problems.clear()
    return document
