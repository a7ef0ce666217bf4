"""Create sessions from a chat: only in folders that the operator's file names, and only for those who may.

What runs and where comes from the operator's file: a harness of the catalogue with its configured arguments, and a
folder below one of the file's. A folder is taken by its real path, so that no symbolic link leads out of the root.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from core.base.errors import CoreError, InvalidValue, NotPermitted
from core.base.names import check_name
from core.base.paths import expanded
from core.chat.inbound import Holds, tell_refused
from core.lifecycle.create import create_standing
from core.model.asking import Role
from core.model.channel import IncomingCreation, PrivateAnswer
from core.model.framing import clean
from core.model.session import ChatBinding, Definition
from core.session.sessions import names_of
from core.session.system import System


def root_folder(root: str) -> Path:
    """Return the real path of a folder that the operator's file names. Raises InvalidValue where it is none."""
    path = expanded(root)
    if not path.is_absolute():
        raise InvalidValue(f"the folder {root!r} is not absolute", "give the whole path in the configuration")
    return _real(path, root)


def folder_below(root: str, folder: str) -> Path:
    """Return the real path of a folder below the root, "" for the root itself.

    Raises InvalidValue for anything that is not there, is no folder, or lies elsewhere.
    """
    base = root_folder(root)
    wanted = folder.strip()
    if not wanted:
        return base
    if not wanted.isprintable() or wanted.startswith(("/", "~")) or ".." in Path(wanted).parts:
        raise InvalidValue(f"{wanted[:80]!r} does not name a folder below {root}", "give a path such as `project/api`")
    found = _real(base / wanted, wanted)
    if not found.is_relative_to(base):
        raise InvalidValue(f"{wanted[:80]!r} leads out of {root}", "choose a folder that is really below it")
    return found


def _real(path: Path, called: str) -> Path:
    try:
        found = path.resolve(strict=True)
        usable = found.is_dir() and os.access(found, os.R_OK | os.X_OK)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that lead in a circle
        reason = error.strerror if isinstance(error, OSError) else "it cannot be followed"
        raise InvalidValue(
            f"the folder {called[:80]!r} cannot be used: {reason}", "choose one that is there"
        ) from error
    if not usable:
        raise InvalidValue(f"{called[:80]!r} is not a folder that can be entered", "choose a folder")
    return found


class Creations:
    """The creations of one chat. `holds` tells who has which role now."""

    def __init__(self, system: System, kind: str, holds: Holds) -> None:
        self._system = system
        self._kind = kind
        self._holds = holds

    def harnesses(self) -> tuple[str, ...]:
        """Return the names of the harnesses that there are, the default one first."""
        default = self._system.settings.routing.default_harness
        return tuple(sorted(self._system.harnesses.names(), key=lambda name: (name != default, name)))

    def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Return what is wrong, by field of the creation, in words for its author."""
        checks: Mapping[str, Callable[[], object]] = {
            "name": lambda: self._check_name(creation.name),
            "harness": lambda: self._check_harness(creation.harness),
            "root": lambda: root_folder(creation.root),
            "prompt": lambda: self._prompt(creation),
            "authorized_users": lambda: self._check_people(creation.authorized_users or ()),
        }
        found: dict[str, str] = {}
        for field, check in checks.items():
            _noted(found, field, check)
        if "root" not in found:
            _noted(found, "folder", lambda: folder_below(creation.root, creation.folder))
        return found

    def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Create and start the session. Raises NotPermitted, InvalidValue, and what `create_standing` does."""
        if not self._holds(creation.author, Role.OPERATOR):
            tell_refused(self._system, self._kind, creation.author, "create")
            raise NotPermitted("you may not create sessions", f"ask one of channels.{self._kind}.operators")
        for field, fault in self.faults(creation).items():
            raise InvalidValue(f"{field}: {fault}", "correct it, and create the session again")
        binding = ChatBinding(True, creation.channel, creation.authorized_users)
        definition = Definition(
            name=creation.name,
            harness=creation.harness,
            cwd=str(folder_below(creation.root, creation.folder)),
            prompt=self._prompt(creation),
            chat={self._kind: binding},
        )
        answer = create_standing(self._system, definition, f"{self._kind}:{creation.author}")
        [row] = answer.sessions
        if not answer.ok:
            return PrivateAnswer(f"{row.name} was not created: {row.detail}")
        return PrivateAnswer(f"{row.name} is created, and works in {definition.cwd}. Its thread opens in the channel.")

    def _check_name(self, name: str) -> None:
        check_name(name)
        if name in names_of(self._system.settings, self._system.records):
            raise InvalidValue(f"there is already a session called {name}", "choose another name")

    def _check_harness(self, harness: str) -> None:
        if harness:
            self._system.harnesses.get(harness)

    def _check_people(self, people: tuple[str, ...]) -> None:
        for person in people:
            if not self._holds(person, Role.MEMBER):
                raise InvalidValue(
                    f"{person} is not on channels.{self._kind}.authorizedUsers", "choose people who are on that list"
                )

    @staticmethod
    def _prompt(creation: IncomingCreation) -> str | None:
        return clean(creation.prompt).text if creation.prompt.strip() else None


def _noted(found: dict[str, str], field: str, check: Callable[[], object]) -> None:
    try:
        check()
    except CoreError as error:
        found[field] = str(error)
