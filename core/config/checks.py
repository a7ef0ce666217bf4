"""What needs more than one key to be judged: names twice, flags that we give ourselves, harnesses that nobody knows.

Each check takes the plain values, whatever their types: what has a wrong type is the schema's to report.
"""

from collections.abc import Iterator
from typing import Any

from core.config.document import Document
from core.config.problems import KeyPath, key_text, shortened
from core.config.settings import BUILT_IN_HARNESSES, Routing
from core.errors import InvalidValue
from core.harness.claude.arguments import refuse_owned
from core.names import check_name

NOT_BUILT = ("codex", "opencode", "gemini")
SESSIONS: KeyPath = ("standingSessions", "sessions")


def check_together(document: Document) -> None:
    """Add a problem to the document for everything that its schema alone cannot see."""
    _harness_keys(document)
    _harness_names(document)
    _owned_flags(document)
    _resume_ids(document)
    _session_names(document)
    _prompts(document)


def value_at(document: Document, *path: str) -> Any:
    """Return the plain value at that path, None where there is none."""
    value: Any = document.data
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def declared_sessions(document: Document) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield each declared session that is a mapping, with its path."""
    declared = value_at(document, "standingSessions", "sessions")
    for index, session in enumerate(declared if isinstance(declared, list) else []):
        if isinstance(session, dict):
            yield (*SESSIONS, index), session


def _harness_keys(document: Document) -> None:
    for key in _mapping(document.data.get("harnesses")):
        path = ("harnesses", key)
        if key in BUILT_IN_HARNESSES:
            document.add(path, f'the key "{key}"', "a key that the-loop does not use itself", "choose another name")
        try:
            check_name(key)
        except InvalidValue as error:
            document.add(path, f'the key "{shortened(key)}"', error.remedy, "choose another name")


def _harness_names(document: Document) -> None:
    known = (*BUILT_IN_HARNESSES, *_mapping(document.data.get("harnesses")))
    chosen: list[tuple[KeyPath, Any]] = [
        (("routing", "defaultHarness"), value_at(document, "routing", "defaultHarness")),
        *((("routing", "harnessArgs", key), key) for key in _mapping(value_at(document, "routing", "harnessArgs"))),
        *(((*path, "harness"), session.get("harness")) for path, session in declared_sessions(document)),
    ]
    for path, name in chosen:
        if not isinstance(name, str) or name in known or (not name and path[0] == SESSIONS[0]):
            continue
        found = f'the harness "{shortened(name)}"'
        if name in NOT_BUILT:
            found += ", for which the-loop has no adapter yet (not built yet)"
        document.add(path, found, _choice(known), f"declare it under harnesses (harnesses.{shortened(name)}.start)")


def _owned_flags(document: Document) -> None:
    declared = _mapping(document.data.get("harnesses"))
    default = value_at(document, "routing", "defaultHarness") or Routing().default_harness
    given: list[tuple[KeyPath, Any, Any]] = [
        (("routing", "harnessArgs", key), key, args)
        for key, args in _mapping(value_at(document, "routing", "harnessArgs")).items()
    ]
    for path, session in declared_sessions(document):
        given.append(((*path, "harnessArgs"), session.get("harness") or default, session.get("harnessArgs")))
    for path, harness, args in given:
        if harness not in declared and isinstance(args, list):
            _refuse_arguments(document, path, harness, args)


def _refuse_arguments(document: Document, path: KeyPath, harness: Any, args: list[Any]) -> None:
    if harness == "bundled" and args:
        document.add(path, "arguments for the bundled agent", "none: it takes no arguments", "remove them")
    for index, argument in enumerate(args if harness == "claude" else []):
        try:
            refuse_owned([argument] if isinstance(argument, str) else [])
        except InvalidValue as error:
            found, allowed = shortened(error.message), "flags that the-loop does not give itself"
            document.add((*path, index), found, allowed, shortened(error.remedy))


def _resume_ids(document: Document) -> None:
    for key, block in _mapping(document.data.get("harnesses")).items():
        resume = _mapping(block).get("resume")
        if isinstance(resume, list) and resume and not any("{id}" in part for part in resume if isinstance(part, str)):
            document.add(
                ("harnesses", key, "resume"),
                "a command without {id}",
                "a command with {id} in one of its arguments, or null",
                "say where the conversation's id goes; without it another conversation would be taken up",
            )


def _session_names(document: Document) -> None:
    places: dict[str, list[KeyPath]] = {}
    for path, session in declared_sessions(document):
        if isinstance(name := session.get("name"), str):
            places.setdefault(name, []).append((*path, "name"))
    for name, paths in places.items():
        if len(paths) < 2:
            continue
        where = " and ".join(f"{key_text(path[:-1])} (line {document.line_of(path)})" for path in paths)
        for path in paths:
            document.add(path, f'"{shortened(name)}", the name of {where}', "each name once",
                         "rename all but one; until then no declared session is used")  # fmt: skip


def _prompts(document: Document) -> None:
    for path, session in declared_sessions(document):
        if session.get("prompt") is not None and session.get("promptFile") is not None:
            document.add(
                (*path, "promptFile"),
                f'prompt and promptFile in "{shortened(str(session.get("name")))}"',
                "one of the two",
                "move the text into the file, or remove promptFile",
            )


def _choice(names: tuple[str, ...]) -> str:
    return ", ".join(names)
