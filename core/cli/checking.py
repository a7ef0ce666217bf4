"""`the-loop doctor`."""

from core.cli.printing import EXIT_FAILED, EXIT_OK, print_findings, print_json
from core.cli.session import Session
from core.cli.terminal import Progress
from core.model.health import all_well


def doctor(session: Session, live: bool, strict: bool) -> int:
    """Run `the-loop doctor`, also where the configuration is not valid: that is one of the findings."""
    from core.base.clock import SystemClock
    from core.base.values import replace
    from core.doctor.checks import checks_of
    from core.doctor.running import run_all
    from core.service.wiring import build_rescue_system

    system = build_rescue_system(session.config, session.environ, lambda _: None)
    session.acting(system)
    checks = checks_of(system, session.config, session.environ, live=live)
    with Progress(f"{len(checks)} checks", session.environ) as progress:
        found = run_all(checks, SystemClock(), lambda check: progress.tell(check.name))
    findings = [replace(one, detail=session.exact(one.detail), remedy=session.exact(one.remedy)) for one in found]
    ok = all_well(findings, strict=strict)
    if session.json:
        print_json({"findings": [finding.to_json() for finding in findings], "ok": ok})
    else:
        print_findings(findings, session.environ)
    return EXIT_OK if ok else EXIT_FAILED
