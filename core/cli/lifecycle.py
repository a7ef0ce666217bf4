"""`the-loop start|stop|restart|status|serve` (the service and its sessions together) and `the-loop demo`."""

import sys
from collections.abc import Mapping
from typing import Any

from core.cli.printing import (
    EXIT_FAILED,
    EXIT_OK,
    print_harnesses,
    print_json,
    print_line,
    print_rows,
    print_services,
    warn,
)
from core.cli.session import Session
from core.config.document import ConfigError
from core.config.loading import refuse_alone
from core.model.rows import misconfigured_row


def _misconfigured(session: Session, error: ConfigError) -> int:
    """Answer with the one row that stands for all sessions; what is wrong is the same in every form."""
    row = misconfigured_row(session.exact(str(error))).to_json()
    if session.json:
        print_json({"services": [], "standingSessions": [row], "ok": False})
    else:
        print_rows([row], session.exact)
    return EXIT_FAILED


def _report(session: Session, report: Mapping[str, Any]) -> int:
    if session.json:
        print_json(report)
    else:
        print_services(report["services"])
        print_harnesses(report.get("harnesses", []))
        print_rows(report["standingSessions"], session.exact)
    return EXIT_OK if report["ok"] else EXIT_FAILED


def start(session: Session) -> int:
    """Run `the-loop start`."""
    from core.service import hosting

    try:
        actor = session.acting(session.system)
    except ConfigError as error:
        return _misconfigured(session, error)
    return _report(session, hosting.start(session.system, actor, warn))


def stop(session: Session) -> int:
    """Run `the-loop stop`."""
    from core.service import hosting
    from core.service.wiring import build_rescue_system

    system = build_rescue_system(session.config, session.environ, warn)
    actor = session.acting(system)
    return _report(session, hosting.stop(system, actor))


def restart(session: Session) -> int:
    """Run `the-loop restart`."""
    from core.service import hosting

    try:
        actor = session.acting(session.system)
    except ConfigError as error:
        return _misconfigured(session, error)
    refuse_alone(session.settings)  # before anything is stopped that nothing would start again
    return _report(session, hosting.restart(session.system, actor, warn))


def status(session: Session) -> int:
    """Run `the-loop status`."""
    from core.service import hosting

    try:
        session.acting(session.system)
    except ConfigError as error:
        return _misconfigured(session, error)
    return _report(session, hosting.status(session.system))


def top(session: Session, name: str | None, interval: float, once: bool) -> int:
    """Run `the-loop top`, which alone imports what draws it."""
    from core.cli import top as live

    return live.top(session, name, interval, once)


def serve(session: Session, tmux: bool) -> int:
    """Run `the-loop serve`."""
    session.acting(session.system)
    if tmux:
        from core.service.wiring import become_tmux

        become_tmux(session.settings, session.environ)
    from core.cli.serving import run_service

    return run_service(session.settings, session.environ)


def demo(session: Session, name: str | None, port: int) -> int:
    """Run `the-loop demo`."""
    from core.config.loading import USUAL_DEMO
    from embedded.demo import explained, run_demo

    def tell(address: Mapping[str, Any]) -> None:
        if session.json:
            print_json(address)
        else:
            print_line(explained(address))
        sys.stdout.flush()

    def tell_end(text: str) -> None:
        if not session.json:
            print_line(text)

    return run_demo(name or USUAL_DEMO, port, session.environ, tell, tell_end, session.config)


def page(session: Session, log_out: bool) -> int:
    """Run `the-loop page`."""
    from core.cli.opening import log_all_out, new_link

    actor = session.acting(session.system)
    told = log_all_out(session.system, actor) if log_out else new_link(session.system, actor)
    if session.json:
        print_json(told.to_json())
    else:
        print_line(session.exact(told.text))
    return EXIT_OK
