"""Commands that remedies name: with this program and this configuration, so that they work as printed."""

import sys
from pathlib import Path

import pytest
import yaml

from core.config.loading import load
from core.model.posts import NewPost, OutboundKind
from core.service.wiring import build_system
from core.session.commands import command_line, exact, exact_for
from embedded.demo import DEMO_CHANNEL, DEMO_PERSON, DEMO_SESSION, DEMO_SOCKET, write_configuration

OWN = Path(sys.executable).with_name("the-loop")
FACTS = {"api_url": "http://127.0.0.1:1/api/", "channels": {DEMO_CHANNEL: "C1"}, "users": {DEMO_PERSON: "U1"}}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Give an environment whose PATH leads to no the-loop."""
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TMUX_TMPDIR": str(tmp_path)}


def test_program_on_the_path_is_named_alone(environ: dict[str, str], tmp_path: Path) -> None:
    """With the default configuration a person types what the documentation shows; a link on PATH will do."""
    linked = tmp_path / "bin"
    linked.mkdir()
    (linked / "the-loop").symlink_to(OWN)

    line = command_line(None, {**environ, "PATH": f"/usr/bin:{linked}"}, "standing", "start", "guide")

    assert line == "the-loop standing start guide"


def test_program_off_the_path_is_named_whole(environ: dict[str, str]) -> None:
    """Nothing on PATH: the absolute path of this installation's program."""
    assert command_line(None, environ, "status") == f"{OWN} status"


def test_another_installation_on_the_path_is_not_meant(environ: dict[str, str], tmp_path: Path) -> None:
    """A program of the same name that is not ours would act on something else."""
    other = tmp_path / "the-loop"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)

    assert command_line(None, {**environ, "PATH": str(tmp_path)}, "status") == f"{OWN} status"


def test_configuration_is_named_unless_it_is_the_default_one(environ: dict[str, str], tmp_path: Path) -> None:
    """Whatever named it for this process, only the default file is found by the next one."""
    default = tmp_path / ".config" / "the-loop" / "cli-config.yaml"
    other = tmp_path / "my files" / "c.yaml"

    lines = [command_line(file, {**environ, "THE_LOOP_CONFIG": str(other)}, "status") for file in (default, other)]

    assert lines == [f"{OWN} status", f"{OWN} --config '{other}' status"]


def test_text_without_a_command_is_left_alone(environ: dict[str, str], tmp_path: Path) -> None:
    """Only a command in backticks is one."""
    text = "`guide` is one of the-loop sessions"

    assert exact(text, tmp_path / "c.yaml", environ) == text


def test_demo_is_told_commands_that_address_the_demo(environ: dict[str, str], tmp_path: Path) -> None:
    """Neither its program nor its configuration is found by itself, so notes name both; an agent's words stay."""
    config = write_configuration(tmp_path, FACTS, f"{DEMO_SOCKET}-{tmp_path.name}")
    system = build_system(load(config, environ), environ)
    whole = f"`{OWN} --config {config} standing start {DEMO_SESSION}`"
    text = f"start it: `the-loop standing start {DEMO_SESSION}`"

    told = exact_for(system.settings, system.environ, text)
    for kind in (OutboundKind.NOTE, OutboundKind.ANSWER):
        system.outbox.add([NewPost(f"p-{kind.value}", kind.value, kind, kind.value, DEMO_SESSION, "slack", text)])
    posts = {row.post.kind: row.post.text for row in system.outbox.due("slack", system.clock.now())}
    system.close()

    assert told == f"start it: {whole}"
    assert posts == {OutboundKind.NOTE: f"start it: {whole}", OutboundKind.ANSWER: text}


def test_a_text_that_passes_twice_names_the_configuration_once(environ: dict[str, str], tmp_path: Path) -> None:
    """A note that is edited, or an answer that several hands pass on."""
    linked = tmp_path / "bin"
    linked.mkdir()
    (linked / "the-loop").symlink_to(OWN)
    around = {**environ, "PATH": f"/usr/bin:{linked}"}
    source = tmp_path / "c.yaml"

    once = exact("`the-loop standing start scribe`", source, around)

    assert once == f"`the-loop --config {source} standing start scribe`"
    assert exact(once, source, around) == once


def test_the_person_of_the_demo_may_start_and_stop(tmp_path: Path, environ: dict[str, str]) -> None:
    """Whatever the page offers can be tried there."""
    config = write_configuration(tmp_path, FACTS, f"{DEMO_SOCKET}-{tmp_path.name}")

    block = yaml.safe_load(config.read_text())["channels"]["slack"]

    assert block["operators"] == block["authorizedUsers"] != []
