"""What changes the digest of a configuration, and what does not."""

import pytest

from core.config.cache import digest_of
from tests.unit.config.conftest import ConfigFolder

USUAL = """\
    harnesses: {shell: {start: [sh, -c, cat], ready: reading}}
    channels: {slack: {channel: C0123456789}}
    standingSessions: {sessions: [{name: scribe, harness: shell, idle: {stopAfter: 2h}}]}
    """


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("start: [sh, -c, cat]", "start: [sh, -c, tac]"),
        ("shell: {", "bash: {start: [bash]}, shell: {"),
        ("C0123456789", "C0123456780"),
        ("2h", "3h"),
        ("name: scribe", "name: clerk"),
        ("name: scribe", "name: scribe, loops: [{name: look, instruction: Look., interval: 1h}]"),
        ("standingSessions: {", "standingSessions: {enabled: true, "),
    ],
)
def test_another_value_makes_another_digest(folder: ConfigFolder, part: str, other: str) -> None:
    """Wherever in the file it stands."""
    before = folder.load(USUAL)
    after = folder.load(USUAL.replace(part, other))

    assert part in USUAL
    assert digest_of(after) != digest_of(before)


def test_other_words_for_the_same_make_the_same_digest(folder: ConfigFolder) -> None:
    """A comment, the order of keys, a default that is written out, and another writing of a value."""
    before = folder.load(USUAL)
    after = folder.load(
        """\
        # the same
        limits: {queuedPerSession: 100}
        standingSessions: {sessions: [{harness: shell, idle: {stopAfter: 2h}, name: "scribe"}]}
        channels:
          slack: {channel: C0123456789}
        harnesses: {shell: {ready: reading, start: [sh, -c, cat]}}
        """
    )

    assert digest_of(after) == digest_of(before)


def test_the_digest_is_the_same_in_every_process(folder: ConfigFolder) -> None:
    """It depends on values alone, not on where one of them lies in memory."""
    first, second = folder.load(USUAL), folder.load(USUAL)

    assert first is not second
    assert digest_of(first) == digest_of(second)
    assert len(digest_of(first)) == 64
