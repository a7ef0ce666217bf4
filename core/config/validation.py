"""The text of a configuration file -> its resolved form, or all that is wrong with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.config.checks import check_together
from core.config.document import read_document
from core.config.loopchecks import check_loops
from core.config.problems import ConfigError, in_order
from core.config.resolving import resolve
from core.config.schema import ConfigFile
from core.config.translation import add_schema_problems


def validate(text: str, path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the resolved form of the file's text (see `settings`). Raises ConfigError with every problem."""
    document = read_document(text, str(path))
    config = None
    if document.broken_at is None:
        try:
            config = ConfigFile.of(document.data)
        except ValidationError as error:
            add_schema_problems(document, error, ConfigFile)
        check_together(document)
        check_loops(document)
    resolved = resolve(config, document, path.parent, env) if config is not None else {}
    if document.problems:
        raise ConfigError(in_order(document.problems))
    return resolved
