"""`the-loop slack manifest|check`."""

import click

from core.domain.rights import Verb
from core.surfaces.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_line
from core.surfaces.cli.session import Session, shared_options


@click.group("slack")
@shared_options
def slack_group() -> None:
    """The Slack channel."""


@slack_group.command("manifest")
@click.option("--url", default="", metavar="URL", help="With read.mode http: the https address at which Slack calls.")
@shared_options
@click.pass_obj
def manifest_command(session: Session, url: str) -> int:
    """Print the app manifest. It goes into Slack's "create an app from a manifest"."""
    from core.wiring import load_channel

    text = load_channel("slack", session.settings, session.environ).manifest(url)
    if session.json:
        print_json({"manifest": text})
    else:
        print_line(text.rstrip("\n"))
    return EXIT_OK


@slack_group.command("check")
@shared_options
@click.pass_obj
def check_command(session: Session) -> int:
    """Ask Slack whether all that it needs is in place. Tokens, scopes, channel, people; exit 1 on any finding."""
    from core.wiring import load_channel

    session.permit(session.system, Verb.STATUS)
    findings = load_channel("slack", session.settings, session.environ).check()
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
