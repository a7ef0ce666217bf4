"""Files that an agent posts: what they hold is looked at before they are taken."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import NotPermitted
from core.chat.speaking import post, redacted_in, redaction_told
from core.model.session import Binding, SessionRecord
from core.session.system import System
from tests.support.chat import HOME, TEAM
from tests.support.pressing import with_slack
from tests.support.world import definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)
VALUE = "a-value-that-nobody-guesses"
BINARY = b"\x7fELF\x02\x01\x01\x00\x03" + VALUE.encode() + b"\x00\x02\xfe\xff"


@pytest.fixture
def speaking(system: System) -> System:
    """Give ports with a recorded session `scribe` that has a thread, and a secret in the environment."""
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), T0))
    system.bindings.bind(Binding("slack", TEAM, HOME, "1.0", "s-1", "scribe", T0))
    return replace(with_slack(system), environ={**system.environ, "THE_LOOP_API_TOKEN": VALUE})


def test_a_binary_with_a_secret_is_refused_to_the_agent(speaking: System, tmp_path: Path) -> None:
    """Where its value is known, at once and with the reason; nothing of it, and of what came with it, is kept."""
    record = speaking.records.read("scribe")
    assert record is not None
    harmless, binary = tmp_path / "notes.txt", tmp_path / "core.bin"
    harmless.write_text("nothing secret")
    binary.write_bytes(BINARY)

    with pytest.raises(NotPermitted, match=r"core\.bin contains a secret") as caught:
        post(speaking, record, "agent:scribe", "look", [harmless, binary], agent=False)

    assert VALUE not in str(caught.value)
    assert speaking.outbox.due("slack", datetime.max.replace(tzinfo=UTC)) == ()
    assert not (speaking.paths.session("s-1") / "outgoing").exists()


def test_a_text_with_a_secret_is_taken(speaking: System, tmp_path: Path) -> None:
    """It loses the secret on its way out; the copy is what stood there, for nobody else to read."""
    record = speaking.records.read("scribe")
    assert record is not None
    text = tmp_path / "notes.txt"
    text.write_text(f"the key is {VALUE}", "utf-16")

    posted = post(speaking, record, "agent:scribe", "", [text], agent=False)

    [row] = speaking.outbox.due("slack", datetime.max.replace(tzinfo=UTC))
    copy = Path(row.post.path)
    assert row.post.id == f"{posted.post_id}-file"
    assert posted.redacted == 1
    assert (copy.read_bytes(), copy.stat().st_mode & 0o777) == (text.read_bytes(), 0o600)


def test_an_agent_is_told_how_many_values_are_taken_out(speaking: System, tmp_path: Path) -> None:
    """Of the text and of its files, so that it does not take the post for what it wrote."""
    record = speaking.records.read("scribe")
    assert record is not None
    text = tmp_path / "notes.txt"
    text.write_text(f"token = hashlib.sha256(raw)\nkey: {VALUE}")

    posted = post(speaking, record, "agent:scribe", f"see {VALUE} and xoxb-1-2-abc", [text], agent=False)
    plain = post(speaking, record, "agent:scribe", "token = hashlib.sha256(raw)", agent=False)

    assert redaction_told(posted.redacted) == {
        "redacted": 3,
        "said": "3 values were redacted: people see `[redacted]` there",
    }
    assert redaction_told(plain.redacted) == {}
    assert redacted_in(speaking.settings, speaking.environ, f"Is it {VALUE}?", "yes", "xoxb-1-2-abc") == 2
