"""Slack's limits, one by one: the longest that passes, and one more that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedded.workspace import limits
from embedded.workspace.model import ApiError


def _plain(length: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": "x" * length}


def _section(length: int) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * length}}


def _fields(count: int) -> dict[str, Any]:
    return {"type": "section", "fields": [_plain(1)] * count}


def _field(length: int) -> dict[str, Any]:
    return {"type": "section", "fields": [_plain(length)]}


def _header(length: int) -> dict[str, Any]:
    return {"type": "header", "text": _plain(length)}


def _context(count: int) -> dict[str, Any]:
    return {"type": "context", "elements": [_plain(1)] * count}


def _actions(count: int) -> dict[str, Any]:
    return {"type": "actions", "elements": [_button(action_id=f"a{number}") for number in range(count)]}


def _button(**members: Any) -> dict[str, Any]:
    return {"type": "button", "text": _plain(1), **members}


def _row(**members: Any) -> dict[str, Any]:
    return {"type": "actions", "elements": [_button(**members)]}


def _select(**members: Any) -> dict[str, Any]:
    """Return a row with a select of one option, with these members besides or instead."""
    options = [{"text": _plain(1), "value": "v"}]
    return {"type": "actions", "elements": [{"type": "static_select", "options": options, **members}]}


def _option(text: int = 1, value: int = 1) -> dict[str, Any]:
    return {"text": _plain(text), "value": "v" * value}


def _confirm(**members: Any) -> dict[str, Any]:
    """Return a row with a button that asks first."""
    asked = {"title": _plain(1), "text": _plain(1), "confirm": _plain(1), "deny": _plain(1), **members}
    return _row(confirm=asked)


def _image(**members: Any) -> dict[str, Any]:
    return {"type": "image", "slack_file": {"id": "F12345678"}, "alt_text": "x", **members}


LIMITS: list[tuple[str, Callable[[int], dict[str, Any]], int]] = [
    ("section text", _section, 3000),
    ("section fields", _fields, 10),
    ("field text", _field, 2000),
    ("header", _header, 150),
    ("context elements", _context, 10),
    ("actions elements", _actions, 25),
    ("button text", lambda n: _row(text=_plain(n)), 75),
    ("button value", lambda n: _row(value="x" * n), 2000),
    ("button url", lambda n: _row(url="x" * n), 3000),
    ("options", lambda n: _select(options=[_option()] * n), 100),
    ("option text", lambda n: _select(options=[_option(text=n)]), 75),
    ("option value", lambda n: _select(options=[_option(value=n)]), 150),
    ("placeholder", lambda n: _select(placeholder=_plain(n)), 150),
    ("confirm title", lambda n: _confirm(title=_plain(n)), 100),
    ("confirm text", lambda n: _confirm(text=_plain(n)), 300),
    ("confirm yes", lambda n: _confirm(confirm=_plain(n)), 30),
    ("confirm no", lambda n: _confirm(deny=_plain(n)), 30),
    ("alt text", lambda n: _image(alt_text="x" * n), 2000),
    ("action_id", lambda n: _row(action_id="x" * n), 255),
    ("block_id", lambda n: {"type": "divider", "block_id": "x" * n}, 255),
]


@pytest.mark.parametrize(("make", "most"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limit_is_met_exactly(make: Callable[[int], dict[str, Any]], most: int) -> None:
    """The published maximum passes; one more is invalid_blocks with a pointer to the place."""
    passed = limits.check_blocks([make(most)])

    with pytest.raises(ApiError) as refused:
        limits.check_blocks([make(most + 1)])

    assert len(passed) == 1
    assert refused.value.code == "invalid_blocks"
    assert "[json-pointer:/blocks/0" in refused.value.detail["response_metadata"]["messages"][0]


@pytest.mark.parametrize(
    "block",
    [
        "text",
        {},
        {"type": "banner"},
        {"type": "section"},
        {"type": "section", "text": "bare"},
        {"type": "section", "text": {"type": "mrkdwn", "text": ""}},
        {"type": "header", "text": {"type": "mrkdwn", "text": "x"}},
        {"type": "context", "elements": []},
        {"type": "actions", "elements": [{"type": "button", "text": {"type": "mrkdwn", "text": "x"}}]},
        {"type": "actions", "elements": [{"type": "button"}]},
        _select(options=[]),
        _select(options=[{"text": _plain(1)}]),
        _select(options="all"),
        _select(initial_option=_option(value=7)),
        _select(confirm={"title": _plain(1)}),
        _confirm(title={"type": "mrkdwn", "text": "x"}),
        _confirm(style="warning"),
        {"type": "image", "alt_text": "x"},
        _image(image_url="https://example.com/x.png"),
        _image(slack_file={"id": "F12345678", "url": "https://example.com/x.png"}),
        _image(slack_file={}),
        _image(slack_file={"id": "https://example.com/x.png"}),
        _image(alt_text=""),
        {"type": "markdown", "text": ""},
        {"type": "divider", "text": "x"},
    ],
)
def test_malformed_block_is_invalid(block: Any) -> None:
    """Unknown types, missing or wrong members are refused."""
    with pytest.raises(ApiError) as refused:
        limits.check_blocks([block])

    assert refused.value.code == "invalid_blocks"


def test_fifty_blocks_pass_and_one_more_does_not() -> None:
    """A message holds fifty blocks."""
    passed = limits.check_blocks([{"type": "divider"}] * 50)

    with pytest.raises(ApiError) as refused:
        limits.check_blocks([{"type": "divider"}] * 51)

    assert len({block["block_id"] for block in passed}) == 50
    assert refused.value.code == "invalid_blocks"


def test_equal_ids_are_refused() -> None:
    """A block_id is unique in a message, an action_id in its block."""
    same_block = [{"type": "divider", "block_id": "a"}] * 2
    same_action = [{"type": "actions", "elements": [_button(action_id="a"), _button(action_id="a")]}]

    for blocks in (same_block, same_action):
        with pytest.raises(ApiError, match="invalid_blocks"):
            limits.check_blocks(blocks)


def test_whole_payload_has_a_limit() -> None:
    """Blocks that are each small enough are together too long above about 13,200 characters."""
    limits.check_blocks([_section(3000)] * 4)

    with pytest.raises(ApiError) as refused:
        limits.check_blocks([_section(3000)] * 5)

    assert refused.value.code == "msg_blocks_too_long"


def test_markdown_is_counted_over_all_blocks() -> None:
    """12,000 characters of markdown in all."""
    half = {"type": "markdown", "text": "x" * 6000}
    limits.check_blocks([half, half])

    with pytest.raises(ApiError) as refused:
        limits.check_blocks([half, half, {"type": "markdown", "text": "x"}])

    assert refused.value.code == "msg_too_long"


def test_missing_ids_are_filled_in() -> None:
    """Every block gets a block_id and every button an action_id, given ones are kept."""
    blocks = limits.check_blocks([{"type": "section", **_section(1), "accessory": _button()}, _row(action_id="mine")])

    assert all(block["block_id"] for block in blocks)
    assert blocks[0]["accessory"]["action_id"]
    assert blocks[1]["elements"][0]["action_id"] == "mine"


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        [],
        {},
        {"event_type": "a"},
        {"event_type": "", "event_payload": {}},
        {"event_type": "a", "event_payload": 1},
    ],
)
def test_metadata_without_its_shape_is_refused(metadata: Any) -> None:
    """Metadata is an event_type and an object, nothing less."""
    with pytest.raises(ApiError, match="invalid_metadata_format"):
        limits.check_metadata(metadata)


def test_attachments_end_at_a_hundred() -> None:
    """A hundred pass."""
    limits.check_attachments([{}] * 100)

    with pytest.raises(ApiError, match="too_many_attachments"):
        limits.check_attachments([{}] * 101)
