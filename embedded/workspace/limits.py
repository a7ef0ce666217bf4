"""Slack's limits on what an app sends, as pure checks that raise ApiError.

The numbers are those of Slack's reference pages. Where none is published, a comment says so.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from embedded.workspace.model import ApiError, Json, invalid_blocks, new_block_id

TEXT_MAX = 40_000  # chat.postMessage cuts there
UPDATE_TEXT_MAX = 4_000  # chat.update refuses above; reported by users, not on its page
MARKDOWN_MAX = 12_000
BLOCKS_MAX = 50
PAYLOAD_MAX = 13_200  # unpublished: reported as the size at which msg_blocks_too_long begins
SECTION_TEXT_MAX = 3_000
FIELD_TEXT_MAX = 2_000
FIELDS_MAX = 10
HEADER_MAX = 150
CONTEXT_MAX = 10
ACTIONS_MAX = 25
BUTTON_TEXT_MAX = 75
VALUE_MAX = 2_000
URL_MAX = 3_000
ALT_TEXT_MAX = 2_000
OPTIONS_MAX = 100
OPTION_TEXT_MAX = 75
OPTION_VALUE_MAX = 150
PLACEHOLDER_MAX = 150
ID_MAX = 255
ATTACHMENTS_MAX = 100
METADATA_MAX = 8_192  # unpublished
VIEW_BLOCKS_MAX = 100
VIEW_MAX = 250_000  # bytes; above it views.open answers view_too_large
TITLE_MAX = 24
PRIVATE_MAX = 3_000
LABEL_MAX = 2_000
INPUT_MAX = 3_000

_EVENT_TYPE = re.compile(r"[A-Za-z0-9_.:-]{1,255}")
_FILE_ID = re.compile(r"F[A-Z0-9]{8,}")
_OTHER_BLOCKS = {"rich_text", "video", "file", "input", "table", "context_actions", "plan", "task_card"}


def check_text(text: Any) -> str:
    """Return a message's text, cut at TEXT_MAX."""
    if not isinstance(text, str):
        raise ApiError(
            "invalid_arguments", response_metadata={"messages": ["[ERROR] must be a string [json-pointer:/text]"]}
        )
    return text[:TEXT_MAX]


def check_markdown(text: Any, conflicting: bool) -> str:
    """Return markdown_text; refuse it beside text or blocks, and above its limit."""
    if conflicting:
        raise ApiError("markdown_text_conflict")
    if not isinstance(text, str) or not text:
        raise ApiError("no_text")
    if len(text) > MARKDOWN_MAX:
        raise ApiError("msg_too_long")
    return text


def check_metadata(metadata: Any) -> Json:
    """Return message metadata, which is an event_type and an object."""
    if not isinstance(metadata, dict) or set(metadata) - {"event_type", "event_payload", "entities"}:
        raise ApiError("invalid_metadata_format")
    kind, payload = metadata.get("event_type"), metadata.get("event_payload")
    if not isinstance(kind, str) or not _EVENT_TYPE.fullmatch(kind) or not isinstance(payload, dict):
        raise ApiError("invalid_metadata_format")
    if len(json.dumps(metadata, ensure_ascii=False)) > METADATA_MAX:
        raise ApiError("metadata_too_large")
    return metadata


def check_attachments(attachments: Any) -> list[Json]:
    """Return attachments, at most a hundred."""
    if not isinstance(attachments, list) or any(not isinstance(entry, dict) for entry in attachments):
        raise ApiError("invalid_attachments")
    if len(attachments) > ATTACHMENTS_MAX:
        raise ApiError("too_many_attachments")
    return attachments


def check_blocks(blocks: Any) -> list[Json]:
    """Return blocks as Slack stores them, with the ids it fills in; refuse what Block Kit refuses."""
    if not isinstance(blocks, list):
        raise ApiError("invalid_blocks_format")
    if len(blocks) > BLOCKS_MAX:
        raise invalid_blocks(f"no more than {BLOCKS_MAX} items allowed [json-pointer:/blocks]")
    problems = _Problems()
    for position, block in enumerate(blocks):
        _check_block(block, f"/blocks/{position}", problems)
    _check_unique(blocks, problems)
    problems.raise_if_any()
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") > MARKDOWN_MAX:
        raise ApiError("msg_too_long")
    if len(json.dumps(blocks, ensure_ascii=False)) > PAYLOAD_MAX:
        raise ApiError("msg_blocks_too_long")
    return [_with_ids(block) for block in blocks]


def check_view(view: Any, kind: str) -> Json:
    """Return a view as Slack stores it; refuse what /reference/views does not allow."""
    found: Any = view
    if isinstance(view, str):
        try:
            found = json.loads(view)
        except (ValueError, RecursionError) as error:
            raise ApiError("invalid_arguments") from error
    problems = _Problems()
    if not isinstance(found, dict) or found.get("type") != kind:
        problems.note("/view/type", f"must be {kind}")
        problems.refuse()
    if len(json.dumps(found, ensure_ascii=False).encode()) > VIEW_MAX:
        raise ApiError("view_too_large")
    allowed = {"type", "blocks", "private_metadata", "callback_id", "external_id"}
    allowed |= (
        {"title", "close", "submit", "clear_on_close", "notify_on_close", "submit_disabled"}
        if kind == "modal"
        else set()
    )
    for key in sorted(set(found) - allowed):
        problems.note(f"/view/{key}", "additional properties are not allowed")
    blocks = found.get("blocks")
    if not isinstance(blocks, list) or not 1 <= len(blocks) <= VIEW_BLOCKS_MAX:
        problems.note("/view/blocks", f"must hold 1 to {VIEW_BLOCKS_MAX} items")
        blocks = []
    for position, block in enumerate(blocks):
        _check_block(block, f"/view/blocks/{position}", problems, in_view=True)
    _check_unique(blocks, problems)
    for key, most in (("private_metadata", PRIVATE_MAX), ("callback_id", ID_MAX), ("external_id", ID_MAX)):
        if not isinstance(found.get(key, ""), str) or len(found.get(key, "")) > most:
            problems.note(f"/view/{key}", f"must be a string of less than {most + 1} characters")
    if kind == "modal":
        _check_text_object(found.get("title"), "/view/title", problems, TITLE_MAX, plain=True)
        for key in ("close", "submit"):
            if found.get(key) is not None:
                _check_text_object(found[key], f"/view/{key}", problems, TITLE_MAX, plain=True)
        if found.get("submit") is None and any(isinstance(one, dict) and one.get("type") == "input" for one in blocks):
            problems.note("/view/submit", "is needed where there are input blocks")
    problems.refuse()
    return {**found, "blocks": [_with_ids(block) for block in blocks]}


class _Problems(list[str]):
    """What is wrong with a list of blocks, each with its place."""

    def note(self, where: str, what: str) -> None:
        self.append(f"{what} [json-pointer:{where}]")

    def raise_if_any(self) -> None:
        if self:
            raise invalid_blocks(*self)

    def refuse(self) -> None:
        """Refuse a view that has any."""
        if self:
            raise ApiError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {one}" for one in self]})


def _check_block(block: Any, where: str, problems: _Problems, in_view: bool = False) -> None:
    if not isinstance(block, dict):
        problems.note(where, "must be an object")
        return
    kind = block.get("type")
    if in_view and kind == "input":
        _check_input(block, where, problems)
    elif in_view and kind in ("markdown", "file", "table"):
        problems.note(f"{where}/type", f"unsupported type: {kind}")
    elif isinstance(kind, str) and kind in _BLOCK_CHECKS:
        _BLOCK_CHECKS[kind](block, where, problems)
    elif kind not in _OTHER_BLOCKS:
        problems.note(f"{where}/type", f"unsupported type: {kind}")
    _check_id(block, "block_id", where, problems)


def _check_input(block: Json, where: str, problems: _Problems) -> None:
    _check_text_object(block.get("label"), f"{where}/label", problems, LABEL_MAX, plain=True)
    if "hint" in block:
        _check_text_object(block["hint"], f"{where}/hint", problems, LABEL_MAX, plain=True)
    element = block.get("element")
    if not isinstance(element, dict) or element.get("type") not in _INPUTS:
        problems.note(f"{where}/element", f"must be one of {', '.join(sorted(_INPUTS))}")
        block["element"] = {}
        return
    _check_id(element, "action_id", f"{where}/element", problems)
    for key in sorted(set(element) - _INPUTS[element["type"]] - {"type", "action_id", "placeholder"}):
        problems.note(f"{where}/element/{key}", "additional properties are not allowed")
    if "placeholder" in element:
        _check_text_object(
            element["placeholder"], f"{where}/element/placeholder", problems, PLACEHOLDER_MAX, plain=True
        )
    longest = element.get("max_length", 1)
    if not isinstance(longest, int) or not 1 <= longest <= INPUT_MAX:
        problems.note(f"{where}/element/max_length", f"must be 1 to {INPUT_MAX}")
    if element["type"] == "static_select":
        _check_options(element, f"{where}/element", problems)


#: The elements of an input block that are known here, and what each may have.
_INPUTS = {
    "plain_text_input": {"initial_value", "multiline", "min_length", "max_length", "focus_on_load"},
    "static_select": {"options", "initial_option", "focus_on_load"},
    "conversations_select": {"initial_conversation", "default_to_current_conversation", "filter", "focus_on_load"},
    "multi_users_select": {"initial_users", "max_selected_items", "focus_on_load"},
}


def _check_options(element: Json, where: str, problems: _Problems) -> None:
    """Check what a select lists, and which of that it begins with."""
    options = element.get("options")
    if not isinstance(options, list) or not 1 <= len(options) <= OPTIONS_MAX:
        problems.note(f"{where}/options", f"must hold 1 to {OPTIONS_MAX} items")
        options = []
    for position, option in enumerate(options):
        place = f"{where}/options/{position}"
        if not isinstance(option, dict):
            problems.note(place, "must be an object")
            continue
        _check_text_object(option.get("text"), f"{place}/text", problems, OPTION_TEXT_MAX, plain=True)
        value = option.get("value")
        if not isinstance(value, str) or not 1 <= len(value) <= OPTION_VALUE_MAX:
            problems.note(f"{place}/value", f"must be a string of 1 to {OPTION_VALUE_MAX} characters")
    if "initial_option" in element and element["initial_option"] not in options:
        problems.note(f"{where}/initial_option", "must be one of the options")


def _check_section(block: Json, where: str, problems: _Problems) -> None:
    fields = block.get("fields")
    if "text" not in block and not fields:
        problems.note(where, "missing required field: text or fields")
    if "text" in block:
        _check_text_object(block["text"], f"{where}/text", problems, SECTION_TEXT_MAX)
    if fields is not None:
        if not isinstance(fields, list) or not 1 <= len(fields) <= FIELDS_MAX:
            problems.note(f"{where}/fields", f"must hold 1 to {FIELDS_MAX} items")
        else:
            for position, entry in enumerate(fields):
                _check_text_object(entry, f"{where}/fields/{position}", problems, FIELD_TEXT_MAX)
    if "accessory" in block:
        _check_element(block["accessory"], f"{where}/accessory", problems)


def _check_header(block: Json, where: str, problems: _Problems) -> None:
    _check_text_object(block.get("text"), f"{where}/text", problems, HEADER_MAX, plain=True)


def _check_context(block: Json, where: str, problems: _Problems) -> None:
    for position, element in enumerate(_elements(block, where, problems, CONTEXT_MAX)):
        if not isinstance(element, dict) or element.get("type") != "image":
            _check_text_object(element, f"{where}/elements/{position}", problems, SECTION_TEXT_MAX)


def _check_actions(block: Json, where: str, problems: _Problems) -> None:
    for position, element in enumerate(_elements(block, where, problems, ACTIONS_MAX)):
        _check_element(element, f"{where}/elements/{position}", problems)


def _check_divider(block: Json, where: str, problems: _Problems) -> None:
    if set(block) - {"type", "block_id"}:
        problems.note(where, "additional properties are not allowed")


def _check_image(block: Json, where: str, problems: _Problems) -> None:
    """Check an image block: https://docs.slack.dev/reference/block-kit/blocks/image-block."""
    address, file = block.get("image_url"), block.get("slack_file")
    if (address is None) == (file is None):
        problems.note(where, "must have one of image_url and slack_file")
    if address is not None and (not isinstance(address, str) or not 0 < len(address) <= URL_MAX):
        problems.note(f"{where}/image_url", f"must be a string of less than {URL_MAX + 1} characters")
    if file is not None and (not isinstance(file, dict) or len({"id", "url"} & set(file)) != 1):
        problems.note(f"{where}/slack_file", "must have one of id and url")
    elif file is not None and "id" in file and not _FILE_ID.fullmatch(str(file["id"])):
        problems.note(f"{where}/slack_file/id", "input must match regex pattern: ^[F][A-Z0-9]{8,}$")
    alternative = block.get("alt_text")
    if not isinstance(alternative, str) or not 0 < len(alternative) <= ALT_TEXT_MAX:
        problems.note(f"{where}/alt_text", f"must be a string of 1 to {ALT_TEXT_MAX} characters")
    if "title" in block:
        _check_text_object(block["title"], f"{where}/title", problems, ALT_TEXT_MAX, plain=True)


def _check_markdown_block(block: Json, where: str, problems: _Problems) -> None:
    text = block.get("text")
    if not isinstance(text, str) or not text:
        problems.note(f"{where}/text", "must be a string of at least 1 character")
        block["text"] = ""


_BLOCK_CHECKS: dict[str, Callable[[Json, str, _Problems], None]] = {
    "section": _check_section,
    "header": _check_header,
    "context": _check_context,
    "actions": _check_actions,
    "divider": _check_divider,
    "image": _check_image,
    "markdown": _check_markdown_block,
}


def _elements(block: Json, where: str, problems: _Problems, most: int) -> list[Any]:
    elements = block.get("elements")
    if not isinstance(elements, list) or not elements:
        problems.note(f"{where}/elements", "must hold at least 1 item")
        return []
    if len(elements) > most:
        problems.note(f"{where}/elements", f"no more than {most} items allowed")
    return elements


def _check_text_object(text: Any, where: str, problems: _Problems, most: int, plain: bool = False) -> None:
    allowed = ("plain_text",) if plain else ("plain_text", "mrkdwn")
    if not isinstance(text, dict) or text.get("type") not in allowed:
        problems.note(where, f"must be a text object of type {' or '.join(allowed)}")
        return
    content = text.get("text")
    if not isinstance(content, str) or not content:
        problems.note(f"{where}/text", "must be more than 0 characters")
    elif len(content) > most:
        problems.note(f"{where}/text", f"must be less than {most + 1} characters")


def _check_element(element: Any, where: str, problems: _Problems) -> None:
    if not isinstance(element, dict) or not isinstance(element.get("type"), str):
        problems.note(where, "must be an element with a type")
        return
    _check_id(element, "action_id", where, problems)
    if element["type"] == "static_select":
        _check_select(element, where, problems)
    if element["type"] != "button":
        return
    _check_text_object(element.get("text"), f"{where}/text", problems, BUTTON_TEXT_MAX, plain=True)
    for key, most in (("value", VALUE_MAX), ("url", URL_MAX)):
        value = element.get(key, "")
        if not isinstance(value, str) or len(value) > most:
            problems.note(f"{where}/{key}", f"must be a string of less than {most + 1} characters")
    if element.get("style", "primary") not in ("primary", "danger"):
        problems.note(f"{where}/style", "must be one of primary, danger")
    if "confirm" in element:
        _check_confirm(element["confirm"], f"{where}/confirm", problems)


def _check_select(element: Json, where: str, problems: _Problems) -> None:
    """Check a select of options that are listed: https://docs.slack.dev/reference/block-kit/block-elements/."""
    if "placeholder" in element:
        _check_text_object(element["placeholder"], f"{where}/placeholder", problems, PLACEHOLDER_MAX, plain=True)
    _check_options(element, where, problems)
    if "confirm" in element:
        _check_confirm(element["confirm"], f"{where}/confirm", problems)


def _check_confirm(confirm: Any, where: str, problems: _Problems) -> None:
    if not isinstance(confirm, dict):
        problems.note(where, "must be a confirmation dialog object")
        return
    _check_text_object(confirm.get("title"), f"{where}/title", problems, 100, plain=True)
    _check_text_object(confirm.get("text"), f"{where}/text", problems, 300)
    for key in ("confirm", "deny"):
        _check_text_object(confirm.get(key), f"{where}/{key}", problems, 30, plain=True)
    if confirm.get("style", "primary") not in ("primary", "danger"):
        problems.note(f"{where}/style", "must be one of primary, danger")


def _check_id(owner: Json, key: str, where: str, problems: _Problems) -> None:
    value = owner.get(key, "")
    if not isinstance(value, str) or len(value) > ID_MAX:
        problems.note(f"{where}/{key}", f"must be a string of less than {ID_MAX + 1} characters")


def _check_unique(blocks: list[Any], problems: _Problems) -> None:
    named = [block for block in blocks if isinstance(block, dict)]
    counts = Counter(block["block_id"] for block in named if isinstance(block.get("block_id"), str))
    problems.extend(f"block_id {name!r} already exists [json-pointer:/blocks]" for name, n in counts.items() if n > 1)
    for position, block in enumerate(named):
        if block.get("type") != "actions" or not isinstance(block.get("elements"), list):
            continue
        ids = Counter(str(element.get("action_id")) for element in block["elements"] if isinstance(element, dict))
        del ids["None"]
        doubled = [name for name, n in ids.items() if n > 1]
        problems.extend(f"action_id {name!r} already exists [json-pointer:/blocks/{position}]" for name in doubled)


def _with_ids(block: Json) -> Json:
    filled = {**block, "block_id": block.get("block_id") or new_block_id()}
    if block["type"] == "actions":
        filled["elements"] = [_with_action_id(element) for element in block["elements"]]
    for key in ("accessory", "element"):
        if key in block:
            filled[key] = _with_action_id(block[key])
    return filled


def _with_action_id(element: Json) -> Json:
    return {**element, "action_id": element.get("action_id") or new_block_id()}
