"""The file is changed where it must be, and stays as it is elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config.commands import starter
from core.config.editing import CannotEdit, change_file, changed_text

CHANGES = {"enabled": True, "channel": "C0123456789", "authorizedUsers": ["U1", "T2:U3"]}
BLOCK = ("channels", "slack")
TEXTS = {
    "empty": "",
    "comments alone": "# mine\n",
    "other keys": "# mine\nrouting:\n  defaultHarness: claude  # yes\n",
    "empty channels": "channels: {}\nlimits: {restartsPerHour: 3}\n",
    "no value": "channels:\nlimits: {restartsPerHour: 3}\n",
    "another chat": "channels:\n  # theirs\n  line: {enabled: true}\n",
    "flow": "channels: {slack: {enabled: false}}  # here\n",
    "flow below": "channels:\n  slack: {enabled: false, verbosity: quiet}\n",
    "lists": "channels:\n  slack:\n    authorizedUsers:\n      - U7\n      - U8\n    verbosity: quiet  # shh\n",
    "last": "channels:\n    slack:\n        enabled: false",
    "starter": starter(),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_keys_are_set_and_comments_stay(text: str) -> None:
    """In every form in which people write it; twice is as once."""
    changed = changed_text(text, BLOCK, CHANGES)

    found = yaml.safe_load(changed)
    before = yaml.safe_load(text) or {}
    assert {key: found["channels"]["slack"][key] for key in CHANGES} == CHANGES
    assert {**found, "channels": None} == {**before, "channels": None}
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert all(comment in changed for comment in comments)
    assert yaml.safe_load(changed_text(changed, BLOCK, CHANGES)) == found


def test_what_cannot_be_changed_is_named_with_what_to_write(tmp_path: Path) -> None:
    """An anchor stands for two blocks: neither may change with the other. The file stays as it is."""
    path = tmp_path / "cli-config.yaml"
    path.write_text("x: &x {enabled: false}\nchannels:\n  slack: *x\n")
    before = path.read_text()

    with pytest.raises(CannotEdit, match="channel: C0123456789"):
        change_file(path, BLOCK, CHANGES)

    assert path.read_text() == before


def test_its_mode_stays(tmp_path: Path) -> None:
    """What only we may write stays so."""
    path = tmp_path / "cli-config.yaml"
    path.write_text("channels: {}\n")
    path.chmod(0o640)

    change_file(path, BLOCK, CHANGES)

    assert path.stat().st_mode & 0o777 == 0o640


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "channels"]),
    st.dictionaries(st.sampled_from(["slack", "x"]), st.dictionaries(st.text(max_size=4), SCALARS | st.lists(SCALARS))),
)


@settings(max_examples=50)
@given(DOCUMENTS, st.booleans())
def test_it_is_changed_rightly_or_refused(document: dict[str, Any], flow: bool) -> None:
    """Whatever stands there."""
    text = yaml.safe_dump(document, default_flow_style=flow)

    try:
        changed = yaml.safe_load(changed_text(text, BLOCK, CHANGES))
    except (ValueError, yaml.YAMLError):
        return

    block = document.get("channels", {}).get("slack", {})
    wanted = {**document, "channels": {**document.get("channels", {}), "slack": {**block, **CHANGES}}}
    assert changed == wanted
