"""The chats: what each finds wrong, and whether what is posted comes back to the service."""

from collections.abc import Callable, Collection, Iterator

from core.base.clock import Deadline
from core.base.errors import ChannelError, CoreError, StoreBroken
from core.base.values import replace
from core.config.settings import FleetSettings, ServiceSettings
from core.model.channel import Channel
from core.model.health import Finding, State
from core.process.control import ask
from core.process.presence import running_service
from core.service.wiring import load_channel
from core.session.system import System

SECONDS = 60.0  #: a chat is asked some dozen questions, and one that hangs is given up after 15 s
LIVE_SECONDS = 60.0
_ECHO_SECONDS = 20.0
_ASK_SECONDS = 3.0
_POLL = 0.1

#: What a host says that has no tokens of a chat, and needs none.
NO_TOKENS = "none are needed here: the tokens are on the hosts of this fleet with `fleet.gateway: true`"


def chat(system: System, kind: str) -> Iterator[Finding]:
    """Look at one chat, and at the channels in which threads of sessions are."""
    try:
        channel = load_channel(kind, system.settings, system.environ)
    except CoreError as error:
        yield Finding(f"{kind}: settings", State.FAILED, error.message, error.remedy)
        return
    try:
        bound = {binding.channel for binding in system.bindings.all(kind)}
    except StoreBroken as error:
        yield Finding(f"{kind}: threads", State.UNKNOWN, error.message, error.remedy)
        bound = set()
    for finding in check(channel, system.settings.service, system.settings.fleet, bound):
        yield replace(finding, name=f"{kind}: {finding.name}")


def check(
    channel: Channel, service: ServiceSettings, fleet: FleetSettings, bound: Collection[str] = ()
) -> Iterator[Finding]:
    """Ask the chat whether everything is in place, and whether its requests over HTTP can reach the service.

    A host of a fleet that is no gateway asks nothing: it has no tokens. `bound`: the channels in which threads are.
    """
    if fleet.behind_gateway:
        yield Finding("tokens", State.OK, f"{NO_TOKENS}; `the-loop {channel.kind} check` there looks at them")
        return
    yield from channel.check(sorted(bound))
    if channel.webhook() is not None and service.port is None:
        yield Finding(
            "requests",
            State.WARNING,
            "service.port is not set: the service takes requests at its Unix socket alone",
            "set `service.port: 4114` and let your proxy forward to it, or let the proxy forward to the socket",
        )


def round_trip(system: System, kind: str) -> Iterator[Finding]:
    """Post a message, see whether an event reaches the service, and remove it again."""
    name = f"{kind}: round trip"
    try:
        channel = load_channel(kind, system.settings, system.environ)
        told = _unable(system, channel)
        if told:
            yield Finding(name, State.UNKNOWN, told, _remedy(system, kind))
            return
        before = _sensed(system, kind)
        began = Deadline(system.clock, _ECHO_SECONDS)
        remove = channel.send_probe(channel.default_channel())
    except ChannelError as error:
        state = State.UNKNOWN if error.transient else State.FAILED
        yield Finding(name, state, f"a message could not be posted: {error.message}", error.remedy)
        return
    try:
        while _sensed(system, kind) == before and not began.passed():
            system.clock.pause(_POLL)
        if _sensed(system, kind) != before:
            took = _ECHO_SECONDS - began.remaining()
            yield Finding(name, State.OK, f"a message that was posted came back to the service in {took:.1f} s")
        else:
            told = f"deaf: a message was posted, and no event reached the service within {_ECHO_SECONDS:g} s"
            remedy = "see that the app subscribes to message events, that its bot is in the channel, and that no other "
            yield Finding(name, State.FAILED, told, f"{remedy}process is connected with the same app")
    finally:
        yield from _removed(name, remove)


def _unable(system: System, channel: Channel) -> str:
    """Return why no round trip can be tried; "" where it can."""
    if system.settings.fleet.behind_gateway:
        return "this host of a fleet does not speak with the chat itself; a gateway's host can try it"
    if not running_service(system.paths.service_lock):
        return "no service is running, and only the service hears"
    if not channel.echoes():
        return "by its way of reading no event reaches the service"
    return "" if channel.default_channel() else "no channel is configured to post in"


def _remedy(system: System, kind: str) -> str:
    if system.settings.fleet.behind_gateway:
        return f"`the-loop doctor --live` there; the row {kind} of `the-loop status` tells how it stands here"
    return "`the-loop start`, with a way of reading that brings events"


def _sensed(system: System, kind: str) -> str:
    """Return when the service got its latest event of that chat, "" for never. Raises NoAnswer."""
    latest = ask(system.paths.service_socket, "status", _ASK_SECONDS).get("sensed", {})
    return str(latest.get(kind, ""))


def _removed(name: str, remove: Callable[[], None]) -> Iterator[Finding]:
    try:
        remove()
    except ChannelError as error:
        yield Finding(name, State.WARNING, f"the message could not be removed: {error.message}", "delete it yourself")
