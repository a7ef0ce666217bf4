"""A channel's own block: read by the channel's own model, with errors reported like those of the rest of the file."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.base.paths import Location
from core.base.plugins import entry_points
from core.config.blocks import ThreadBlock
from core.config.chats import GROUP, INFO_GROUP, ChannelBroken, chat_info, installed_kinds, load_part
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


def checked_block(kind: str, raw: Mapping[str, Any], source: Path | None = None) -> dict[str, Any]:
    """Return the block of an installed channel as its model reads it: every key, by the file's own names, JSON-able.

    Raises ConfigError with everything that the model finds wrong, ChannelBroken.
    """
    return channel_settings(raw, settings_model(kind), name=kind, source=source).model_dump(by_alias=True, mode="json")


def checked_blocks(blocks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the blocks as `checked_block` does, without those that are wrong: whoever makes the channel is told."""
    checked = {}
    for kind in installed_kinds():
        if kind in blocks:
            with suppress(ConfigError, ChannelBroken):
                checked[kind] = checked_block(kind, blocks[kind])
    return checked


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
    """Return the settings model of each installed channel by name. Raises ChannelBroken."""
    return {kind: settings_model(kind) for kind in installed_kinds()}


def settings_model(kind: str) -> type[BaseModel]:
    """Return the model of an installed channel's own block, which its ChatInfo names. Imports no channel.

    Raises ChannelBroken where it names none, or cannot be imported.
    """
    target = chat_info(kind).settings
    found = load_part(kind, target) if target else None
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        reason = f"its entry in the group {INFO_GROUP} names no model of its settings"
        raise ChannelBroken(kind, target or entry_points(GROUP).get(kind, kind), reason)
    return found


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
