"""What a start of a session would run into: a dialog of its program's, which a person has to answer."""

from core.errors import UnsupportedHarness
from core.session.sessions import Known, every_session, resolve
from core.system import System


def dialog_ahead(system: System, known: Known) -> str:
    """Return which dialog the session's next start would stand at, and what settles it; "" where none is known.

    Of a harness that cannot be had nothing is told here: its start refuses it, and says why.
    """
    resolved = resolve(known.definition, system.settings)
    try:
        return system.harnesses.get(resolved.harness).dialog_ahead(resolved.cwd, resolved.args)
    except UnsupportedHarness:
        return ""


def dialogs_ahead(system: System) -> tuple[str, ...]:
    """Return the same of every session, with its name."""
    told = ((known.name, dialog_ahead(system, known)) for known in every_session(system.settings, system.records))
    return tuple(f"{name}: {dialog}" for name, dialog in told if dialog)
