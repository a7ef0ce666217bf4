"""A configuration file to write, and the problems it leads to."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from core.config.document import ConfigError, Problem
from core.config.loading import load
from core.config.settings import Settings


class ConfigFolder:
    """A folder with a configuration file, and an environment that has nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.path = root / "etc" / "cli-config.yaml"
        self.home.mkdir()
        self.path.parent.mkdir()
        self.env = {"HOME": str(self.home)}

    def write(self, text: str) -> None:
        """Write the file; the text's common indentation is taken away."""
        self.path.write_text(textwrap.dedent(text), encoding="utf-8")

    def load(self, text: str) -> Settings:
        """Write the file and load it."""
        self.write(text)
        return load(self.path, self.env)

    def problems(self, text: str) -> dict[str, Problem]:
        """Write the file, load it, and return what is wrong by key path."""
        self.write(text)
        with pytest.raises(ConfigError) as caught:
            load(self.path, self.env)
        return {problem.key: problem for problem in caught.value.problems}


@pytest.fixture
def folder(tmp_path: Path) -> ConfigFolder:
    """Return an empty configuration folder."""
    return ConfigFolder(tmp_path)
