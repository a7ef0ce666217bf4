"""What a start of a session would meet: a dialog that a person must answer, or settings that silence its hooks."""

from core.base.errors import UnsupportedHarness
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.session.sessions import Known, every_session, resolve
from core.store.records import Records


def trouble_ahead(settings: Settings, harnesses: Harnesses, known: Known) -> tuple[str, str]:
    """Return what the session's next start would stand at, and what would keep it from telling what it does.

    Each with its remedy, in its harness's words; "" where nothing is known. Of a harness that cannot be had nothing is
    told here: its start refuses it, and says why.
    """
    resolved = resolve(known.definition, settings)
    try:
        harness = harnesses.get(resolved.harness)
    except UnsupportedHarness:
        return "", ""
    return (harness.dialog_ahead(resolved.cwd, resolved.args), harness.silence_ahead(resolved.cwd, resolved.args))


def troubles_ahead(settings: Settings, records: Records, harnesses: Harnesses) -> tuple[str, ...]:
    """Return the same of every session, with its name."""
    told = ((known.name, trouble_ahead(settings, harnesses, known)) for known in every_session(settings, records))
    return tuple(f"{name}: {'; '.join(filter(None, trouble))}" for name, trouble in told if any(trouble))
