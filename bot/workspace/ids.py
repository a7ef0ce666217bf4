"""Identifiers and secrets in the forms Slack gives them."""

from __future__ import annotations

import base64
import secrets

_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def new_id(prefix: str) -> str:
    """Return a fresh identifier such as U7K2…: the prefix and ten capitals or digits."""
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(10))


def new_secret(prefix: str = "") -> str:
    """Return a fresh secret, good for a token, a ticket or a URL that proves itself."""
    return prefix + secrets.token_urlsafe(24).replace("_", "x").replace("-", "y")


def new_block_id() -> str:
    """Return what Slack fills in for a block without block_id: five characters."""
    return secrets.token_urlsafe(8)[:5]


def format_ts(micros: int) -> str:
    """Return microseconds since the epoch as a message ts: ten digits, a dot, six digits."""
    return f"{micros // 1_000_000:010d}.{micros % 1_000_000:06d}"


def parse_ts(text: str) -> int:
    """Return a ts as microseconds; ValueError when it is not of the form seconds[.micros]."""
    seconds, _, micros = text.partition(".")
    if not seconds.isdigit() or (micros and not micros.isdigit()) or len(micros) > 6:
        raise ValueError(f"{text!r} is not a ts such as 1700000000.000100")
    return int(seconds) * 1_000_000 + int(micros.ljust(6, "0") or 0)


def encode_cursor(position: str) -> str:
    """Return an opaque paging cursor."""
    return base64.b64encode(f"next:{position}".encode()).decode()


def decode_cursor(cursor: str) -> str:
    """Return the position within a cursor; ValueError when this server did not make it."""
    try:
        kind, _, position = base64.b64decode(cursor, validate=True).decode().partition(":")
    except UnicodeDecodeError as error:
        raise ValueError(f"{cursor!r} is not a cursor of ours") from error
    if kind != "next":
        raise ValueError(f"{cursor!r} is not a cursor of ours")
    return position
