"""What a start of a session would run into: a dialog that a person has to answer, settings that make it mute."""

from core.errors import UnsupportedHarness
from core.session.sessions import Known, every_session, resolve
from core.system import System


def trouble_ahead(system: System, known: Known) -> str:
    """Return what the session's next start would stand at, or what would keep it from telling what it does.

    With the remedy; "" where nothing is known. Of a harness that cannot be had nothing is told here: its start refuses
    it, and says why.
    """
    resolved = resolve(known.definition, system.settings)
    try:
        harness = system.harnesses.get(resolved.harness)
    except UnsupportedHarness:
        return ""
    told = (harness.dialog_ahead(resolved.cwd, resolved.args), harness.silence_ahead(resolved.cwd, resolved.args))
    return "; ".join(text for text in told if text)


def troubles_ahead(system: System) -> tuple[str, ...]:
    """Return the same of every session, with its name."""
    told = ((known.name, trouble_ahead(system, known)) for known in every_session(system.settings, system.records))
    return tuple(f"{name}: {trouble}" for name, trouble in told if trouble)
