"""`the-loop config check | show | schema | init | path`, and a channel's own block."""

from __future__ import annotations

import stat
import textwrap
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from bot.schema import SlackBlock
from core.base.errors import CoreError
from core.config import commands
from core.config.channels import channel_settings, installed_models
from core.config.chats import ChannelBroken
from core.config.commands import starter
from core.config.document import ConfigError
from core.config.loading import load
from tests.unit.config.conftest import ConfigFolder


class ChatSettings(BaseModel):
    """A channel's settings as its package would declare them."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)

    enabled: bool = False
    channel: str = "C1"
    authorized_users: list[str] = []


MODELS = {"chat": ChatSettings}


def test_check_finds_nothing_in_a_good_file(folder: ConfigFolder) -> None:
    """A valid file with a valid channel block has no problems."""
    folder.write("channels: {chat: {enabled: true, authorizedUsers: [U1]}}\n")

    assert commands.check(folder.path, folder.env, models=MODELS) == ()


def test_a_file_that_others_may_write_to_is_warned_of(folder: ConfigFolder) -> None:
    """Whoever writes it decides what runs; it is used all the same."""
    folder.write("{}\n")
    folder.path.chmod(0o664)
    loose = commands.writable_by_others(folder.path, folder.env)
    folder.path.chmod(0o644)

    assert f"`chmod go-w {folder.path}`" in loose
    assert commands.writable_by_others(folder.path, folder.env) == ""


def test_check_finds_what_is_wrong_in_core_and_in_channels(folder: ConfigFolder) -> None:
    """Core's problems come as a list; with core in order, each channel's model is asked too, with lines."""
    folder.write("channels:\n  chat:\n    authorizedUser: [U1]\n    channel: 5\n  fax: {}\n")

    found = commands.check(folder.path, folder.env, models=MODELS)

    assert [(problem.line, problem.key) for problem in found] == [
        (3, "channels.chat.authorizedUser"),
        (4, "channels.chat.channel"),
        (5, "channels.fax"),
    ]
    assert "`authorizedUsers`" in found[0].remedy
    assert "not installed" in found[2].found
    folder.write("nonsense: 1\n")
    assert [problem.key for problem in commands.check(folder.path, folder.env, models=MODELS)] == ["nonsense"]


def test_an_error_in_core_hides_none_in_the_channels(folder: ConfigFolder) -> None:
    """Everything at once, each key once, in the file's order; a block that is no mapping is core's to refuse."""
    folder.write(
        """
        nonsense: 1
        channels:
          chat: {enabled: "yes", authorizedUser: [U1]}
          fax: {}
          phone: 5
        limits: {queuedPerSession: 0}
        """
    )

    found = commands.check(folder.path, folder.env, models=MODELS)

    assert [problem.key for problem in found] == [
        *("nonsense", "channels.chat.enabled", "channels.chat.authorizedUser", "channels.fax", "channels.phone"),
        "limits.queuedPerSession",
    ]


def test_a_file_that_is_no_yaml_has_that_one_problem(folder: ConfigFolder) -> None:
    """Nothing can be said of blocks that cannot be read."""
    folder.write("channels: {chat: {authorizedUser: [U1]}\nnonsense: [")

    assert len(commands.check(folder.path, folder.env, models=MODELS)) == 1


def test_a_channels_settings_come_from_its_own_model(folder: ConfigFolder) -> None:
    """Core passes the raw block on; the channel's model gives it types and defaults."""
    block = folder.load("channels: {chat: {enabled: true}}\n").channel("chat")

    found = channel_settings(block.raw, ChatSettings, name="chat")

    assert found == ChatSettings(enabled=True)


def test_a_malformed_channel_block_is_refused_in_the_same_style(folder: ConfigFolder) -> None:
    """Line, key path, found, allowed: as for core's own keys, even where the file is gone meanwhile."""
    settings = folder.load("channels:\n  chat:\n    channel: [x]\n")

    with pytest.raises(ConfigError) as caught:
        channel_settings(settings.channel("chat").raw, ChatSettings, name="chat", source=settings.source)
    folder.path.unlink()
    with pytest.raises(ConfigError) as later:
        channel_settings(settings.channel("chat").raw, ChatSettings, name="chat", source=settings.source)

    assert str(caught.value.problems[0]).startswith(f"{folder.path}:3: channels.chat.channel: found a list of 1; ")
    assert str(later.value.problems[0]).startswith(f"{folder.path}: channels.chat.channel: found a list of 1; ")


def test_show_is_the_configuration_in_effect(folder: ConfigFolder) -> None:
    """Every key with its value, channels' defaults included; as a file it means the same."""
    folder.write("limits: {queuedPerSession: 7}\nstandingSessions: {sessions: [{name: a, prompt: 'x: y'}]}\n")
    before = load(folder.path, folder.env)

    shown = commands.show(folder.path, folder.env, models=MODELS)

    values = yaml.safe_load(shown)
    assert values["limits"] == {
        "queuedPerSession": 7,
        "messageExpiryMinutes": 60.0,
        "restartsPerHour": 5,
        "approvalWaitSeconds": 600.0,
        "retainTextDays": 14,
    }
    assert values["channels"]["chat"] == {"enabled": False, "channel": "C1", "authorizedUsers": []}
    folder.path.write_text(shown)
    after = load(folder.path, folder.env)
    assert (after.standing, after.limits, after.state_root) == (before.standing, before.limits, before.state_root)


def test_show_of_a_broken_channel_block_is_an_error(folder: ConfigFolder) -> None:
    """What is not valid is not in effect."""
    folder.write("channels: {chat: {channel: 5}}\n")

    with pytest.raises(ConfigError, match=r"channels\.chat\.channel"):
        commands.show(folder.path, folder.env, models=MODELS)


def test_the_schema_names_every_key_and_the_channels_own(folder: ConfigFolder) -> None:
    """Editors are given the file's key names, and may not add others."""
    schema = commands.schema(models=MODELS)

    assert set(schema["properties"]) == {
        "state", "routing", "harnesses", "channels", "standingSessions", "limits", "loops", "eventLog", "service",
        "fleet",
    }  # fmt: skip
    assert schema["additionalProperties"] is False
    assert "authorizedUsers" in schema["properties"]["channels"]["properties"]["chat"]["properties"]


def test_init_writes_a_file_that_is_valid_and_private(folder: ConfigFolder) -> None:
    """The starter lands where the configuration is looked for, readable by its owner alone."""
    path = commands.init(None, folder.env)

    assert path == folder.home / ".config/the-loop/cli-config.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(None, folder.env).source == path


def test_what_the_starter_suggests_is_valid_too(folder: ConfigFolder) -> None:
    """With the examples taken out of their comments the file is still valid."""
    lines = [line for line in starter().splitlines() if line.strip() != "sessions: []"]
    examples = "\n".join(
        line.replace("# ", "", 1) if line.startswith("  ") and line.strip().startswith("# ") else line for line in lines
    )

    found = folder.load(examples)

    assert found.standing.sessions[0].name == "scribe"
    assert found.routing.harness_args["claude"]
    assert found.channel("slack").raw["channel"] == "C0123456789"


def test_init_never_overwrites(folder: ConfigFolder) -> None:
    """A file that is there, whatever it holds, stays as it is."""
    folder.write("mine: 1\n")

    with pytest.raises(commands.ConfigExists) as caught:
        commands.init(folder.path, folder.env)

    assert str(folder.path) in str(caught.value)
    assert folder.path.read_text() == "mine: 1\n"


def test_init_says_why_it_cannot_write(folder: ConfigFolder) -> None:
    """A folder that cannot be made is named with its reason."""
    folder.write("")

    with pytest.raises(CoreError, match="Not a directory"):
        commands.init(folder.path / "below" / "x.yaml", folder.env)


def test_where_says_which_file_and_why(folder: ConfigFolder) -> None:
    """`config path` answers for the flag, the variable and the default."""
    named = commands.where(folder.path, folder.env)
    default = commands.where(None, folder.env)

    assert (named.path, named.why) == (folder.path, "named by --config")
    assert default.why == "the default, in ~/.config"


def test_problems_are_dedented_text_a_person_can_read(folder: ConfigFolder) -> None:
    """The whole error is one line a problem under one heading."""
    folder.write("a: 1\nb: 2\n")

    with pytest.raises(ConfigError) as caught:
        load(folder.path, folder.env)

    lines = str(caught.value).splitlines()
    assert lines[0] == "the configuration is not valid:"
    assert [line.startswith(f"  {folder.path}:") for line in lines[1:]] == [True, True]
    assert textwrap.dedent(lines[1]).endswith("remove it")


def test_the_path_of_the_file_is_absolute_in_problems(folder: ConfigFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the error finds the file from anywhere."""
    folder.write("a: 1\n")
    monkeypatch.chdir(folder.path.parent)

    found = commands.check(Path(folder.path.name), folder.env, models={})

    assert found[0].file == str(folder.path)


def test_the_installed_channels_bring_their_models() -> None:
    """What the entry point group names is what `config` knows of channels; Slack is one of them."""
    assert installed_models()["slack"] is SlackBlock


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ("[the_loop.chats]\nfax = no_such_module_at_all:FAX\n", "No module named"),
        ("", "names no model of its settings"),
    ],
    ids=["broken", "without"],
)
def test_a_channel_that_cannot_be_loaded_is_named(
    info: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A channel's package that is broken is told by name, target and reason."""
    package = tmp_path / "broken_channel-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-channel\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[the_loop.channels]\nfax = no_such_module_at_all:Fax\n{info}")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(ChannelBroken) as caught:
        installed_models()

    assert "'fax' (no_such_module_at_all:F" in str(caught.value)
    assert told in str(caught.value)
