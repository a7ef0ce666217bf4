"""The agent programs: is each there, in which version, is it logged in, and what can its adapter prove."""

from collections.abc import Iterator, Mapping

from core.base.errors import CoreError, HarnessNotInstalled, UnsupportedHarness
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.harness.logins import login_of
from core.model.harness import Harness, Traits
from core.model.health import Finding, State
from core.model.session import Definition
from core.session.sessions import every_session, resolve, resolve_record
from core.store.records import Records

SECONDS = 12.0  #: a program has five for its version


def harnesses_of(settings: Settings, records: Records) -> Mapping[str, Definition]:
    """Return a session of each harness that sessions have; without sessions, the default one with none of them."""
    found: dict[str, Definition] = {}
    for known in every_session(settings, records):
        if known.unreadable is None:
            found.setdefault(resolve(known.definition, settings).harness, known.definition)
            if known.record:
                found.setdefault(resolve_record(known.record, settings).harness, known.record.definition)
    return found or {settings.routing.default_harness: Definition("doctor")}


def harness(
    name: str, definition: Definition, settings: Settings, harnesses: Harnesses, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Look at one program."""
    title = f"harness {name}"
    try:
        adapter = harnesses.get(name)
        adapter.check(definition, resolve(definition, settings).args)
    except (HarnessNotInstalled, UnsupportedHarness) as error:
        yield Finding(title, State.FAILED, error.message, error.remedy)
        return
    except CoreError as error:
        yield Finding(title, State.FAILED, f"its sessions cannot be started: {error.message}", error.remedy)
        return
    yield _version(title, adapter)
    login = login_of(name, environ)
    if login is not None:
        state = {True: State.OK, False: State.WARNING, None: State.WARNING}[login.found]
        yield Finding(f"{title}, log-in", state, login.detail, login.remedy)
    yield Finding(f"{title}, proofs", State.OK, proofs(adapter.traits))


def _version(title: str, adapter: Harness) -> Finding:
    installed = adapter.installed()
    if installed is None:
        return Finding(title, State.OK, "it is there")
    if installed.trouble:
        return Finding(title, State.UNKNOWN, installed.note(), "run it with --version, and see what it says")
    tried = f" (tried: {', '.join(installed.tried)})" if installed.tried else ""
    if note := installed.note():
        remedy = "docs/harness-matrix.md shows what was tried; in a checkout, `make test-harness` tries a version"
        return Finding(title, State.WARNING, f"{installed.version}: {note}", remedy)
    return Finding(title, State.OK, f"{installed.version}{tried}")


def proofs(traits: Traits) -> str:
    """Return what the adapter can prove, and what it cannot."""
    said = {
        "that a turn took a message": traits.evidence,
        "that the program reads": traits.boot_signal,
        "that no turn begins during a pause": traits.turn_gate,
        "that a conversation can be resumed": traits.id_policy.value != "none",
        "calls of our tools": traits.tools,
        **{capability.value: False for capability in sorted(traits.lacks, key=lambda one: one.value)},
    }
    can = [what for what, proven in said.items() if proven]
    cannot = [what for what, proven in said.items() if not proven]
    parts = [f"it can prove {', '.join(can)}" if can else "", f"it cannot prove {', '.join(cannot)}" if cannot else ""]
    return "; ".join(part for part in parts if part)
