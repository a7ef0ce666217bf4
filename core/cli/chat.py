"""`the-loop <chat> manifest|check`, for each installed chat."""

from core.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_line
from core.cli.session import Session


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
    from core.service.wiring import load_channel

    session.acting(session.system)
    findings = load_channel(kind, session.settings, session.environ).check()
    ok = all(finding.ok for finding in findings)
    if session.json:
        rows = [
            {"name": f.name, "ok": f.ok, "detail": session.exact(f.detail), "remedy": session.exact(f.remedy)}
            for f in findings
        ]
        print_json({"findings": rows, "ok": ok})
    else:
        for finding in findings:
            remedy = f"; {session.exact(finding.remedy)}" if finding.remedy and not finding.ok else ""
            print_line(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}{remedy}")
    return EXIT_OK if ok else EXIT_FAILED
