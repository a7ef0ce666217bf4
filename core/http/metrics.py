"""GET /metrics in Prometheus' text format. Everything is read when it is asked for; nothing is guessed.

What could not be asked is left out, and `the_loop_scrape_ok` names that part.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.names import target_for
from core.http.answers import route
from core.http.facts import Facts
from core.model.activity import ActivityState
from core.model.asking import RequestKind
from core.model.loop import OPEN, Held, Loop, LoopStatus
from core.model.message import MessageState
from core.model.posts import PostState
from core.model.session import HoldKind, Live, SessionRecord, Status
from core.session.sessions import Known, every_session

_LOG = logging.getLogger(__name__)


Answered = Counter[tuple[str, str, int]]  #: requests of the API by method, path and status


def metrics_route(facts: Facts, answered: Answered) -> Route:
    """Return the route. `answered` is counted up by the API."""
    registry = CollectorRegistry()
    registry.register(ServiceCollector(facts, answered))
    ProcessCollector(registry=registry)

    def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return route("GET", "/metrics", metrics)


class ServiceCollector(Collector):
    """The product's own metrics."""

    def __init__(self, facts: Facts, answered: Answered) -> None:
        self._facts = facts
        self._answered = answered

    def describe(self) -> Iterator[Metric]:
        """Name nothing beforehand: registering must ask nobody."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        facts = self._facts
        yield GaugeMetricFamily("the_loop_subscriptions", "Watches held on the ends of panes", value=facts.watches())
        yield GaugeMetricFamily(
            "the_loop_tmux_up", "Whether tmux answered when last asked", value=int(facts.tmux() == "ok")
        )
        yield GaugeMetricFamily("the_loop_uptime_seconds", "Age of the service", value=facts.uptime())
        yield _labelled("the_loop_channel_up", "Whether a channel is connected", "channel", facts.channels())
        yield _counter("the_loop_events", "Events that this service emitted since it began", "event", facts.events())
        yield _counter("the_loop_dropped", "Replies that went no further, since it began", "reason", facts.dropped())
        yield self._http()
        yield from self._asked()

    def _asked(self) -> Iterator[Metric]:
        parts: Mapping[str, Callable[[], Metric]] = {
            "sessions": self._sessions,
            "inbox": self._inbox,
            "outbox": self._outbox,
            "loops": self._loops,
            "activities": self._activities,
            "holds": self._holds,
            "requests": self._requests,
            "tokens": self._tokens,
            "cost": self._cost,
        }
        answered = dict.fromkeys(parts, True)
        for part, ask in parts.items():
            try:
                yield ask()
            except CoreError as error:
                _LOG.warning("metrics incomplete", extra={"part": part, "reason": str(error)})
                answered[part] = False
        yield _labelled("the_loop_scrape_ok", "Whether a part of this answer could be asked", "part", answered)

    def _http(self) -> Metric:
        family = CounterMetricFamily(
            "the_loop_http_requests", "Answered requests of the API", labels=["method", "path", "status"]
        )
        for (method, path, status), count in sorted(self._answered.items()):
            family.add_metric([method, path, str(status)], count)
        return family

    def _activities(self) -> Metric:
        running = {record.instance_id for record in self._records() if record.status is Status.RUNNING}
        told = self._facts.system.activities.all().values()
        counts = Counter(one.state.value for one in told if one.instance in running)
        values = {state.value: counts[state.value] for state in ActivityState}
        return _labelled("the_loop_activities", "Sessions that run, by what they do, as last told", "state", values)

    def _holds(self) -> Metric:
        counts = Counter(record.hold.kind.value for record in self._records() if record.hold is not None)
        values = {kind.value: counts[kind.value] for kind in HoldKind}
        return _labelled("the_loop_holds", "Held sessions", "kind", values)

    def _records(self) -> Iterator[SessionRecord]:
        system = self._facts.system
        known = every_session(system.settings, system.records)
        return (one.record for one in known if one.record is not None)

    def _requests(self) -> Metric:
        counts = Counter(request.kind.value for request in self._facts.system.requests.open())
        values = {kind.value: counts[kind.value] for kind in RequestKind}
        return _labelled("the_loop_requests", "What waits for a person's answer", "kind", values)

    def _sessions(self) -> Metric:
        system = self._facts.system
        sessions = every_session(system.settings, system.records)
        counts = Counter(live.value for live in self._lives(sessions))
        values = {live.value: counts[live.value] for live in Live}
        return _labelled("the_loop_sessions", "Declared and recorded sessions, by what lives", "live", values)

    def _lives(self, sessions: tuple[Known, ...]) -> Iterator[Live]:
        try:
            survey = self._facts.system.runner.survey()
        except (TmuxSilent, TmuxMissing):
            yield from (Live.UNKNOWN for _ in sessions)
            return
        for known in sessions:
            yield survey.live(target_for(known.name), known.record.instance_id if known.record else None)

    def _tokens(self) -> Metric:
        family = CounterMetricFamily(
            "the_loop_tokens", "Tokens of each session's conversation", labels=["session", "model", "kind"]
        )
        for session, model, usage in self._usages():
            for kind in ("input", "output", "cached"):
                family.add_metric([session, model, kind], usage[kind])
        return family

    def _cost(self) -> Metric:
        family = CounterMetricFamily(
            "the_loop_cost_usd", "Cost of each session's conversation, where it is told", labels=["session", "model"]
        )
        for session, model, usage in self._usages():
            if usage["costUsd"] is not None:
                family.add_metric([session, model], usage["costUsd"])
        return family

    def _usages(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield session, model and usage; the model is "" where the records do not tell them apart."""
        system = self._facts.system
        workings = system.workings.all()
        for known in every_session(system.settings, system.records):
            _, told = workings.get(known.record.uid if known.record else "", ("", None))
            if told is None:
                continue
            usage = told["usage"]
            models = usage["byModel"] or ({"": usage["session"]} if usage["session"] else {})
            for model, one in models.items():
                yield known.name, model, one

    def _inbox(self) -> Metric:
        counts = self._facts.system.inbox.tally()
        values = {state.value: counts.get(state.value, 0) for state in MessageState}
        return _labelled("the_loop_inbox", "Messages on their way in and settled ones, by state", "state", values)

    def _loops(self) -> Metric:
        counts = Counter(_state(loop) for loop in self._facts.system.loops.all_open())
        states = [*(status.value for status in LoopStatus if status in OPEN), *(f"held-{held.value}" for held in Held)]
        values = {state: counts[state] for state in states}
        return _labelled("the_loop_loops", "Loops that have not ended, by what they do", "state", values)

    def _outbox(self) -> Metric:
        counts = self._facts.system.outbox.tally()
        values = {state.value: counts.get(state.value, 0) for state in PostState}
        return _labelled("the_loop_outbox", "Posts on their way out and settled ones, by state", "state", values)


def _state(loop: Loop) -> str:
    return (
        f"held-{loop.held.value}" if loop.status is LoopStatus.ACTIVE and loop.held is not None else loop.status.value
    )


def _labelled(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _counter(name: str, told: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, told, labels=[label])
    for value, number in sorted(values.items()):
        family.add_metric([value], number)
    return family
