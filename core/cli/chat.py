"""`the-loop <chat> manifest|check`, for each installed chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.printing import EXIT_FAILED, EXIT_OK, print_findings, print_json, print_line
from core.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.model.health import Finding


def manifest(kind: str, session: Session, url: str) -> int:
    """Run `the-loop <kind> manifest`."""
    from core.service.wiring import load_channel

    text = load_channel(kind, session.settings, session.environ).manifest(url)
    if session.json:
        print_json({"manifest": text})
    else:
        print_line(text.rstrip("\n"))
    return EXIT_OK


def check(kind: str, session: Session) -> int:
    """Run `the-loop <kind> check`."""
    from core.base.values import replace
    from core.doctor import chats
    from core.model.health import all_well
    from core.service.wiring import load_channel

    session.acting(session.system)
    channel = load_channel(kind, session.settings, session.environ)
    findings: Sequence[Finding] = tuple(chats.check(channel, session.settings.service, session.settings.fleet))
    findings = [replace(one, detail=session.exact(one.detail), remedy=session.exact(one.remedy)) for one in findings]
    ok = all_well(findings)
    if session.json:
        print_json({"findings": [{**finding.to_json(), "ok": finding.ok} for finding in findings], "ok": ok})
    else:
        print_findings(findings, session.environ)
    return EXIT_OK if ok else EXIT_FAILED
