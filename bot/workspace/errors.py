"""What the workspace refuses, in the words a client of Slack knows."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class ApiError(Exception):
    """A Web API call that is answered with `ok: false`.

    `code` is the value of `error`; `detail` holds further members of the answer.
    """

    def __init__(self, code: str, **detail: Any) -> None:
        super().__init__(code)
        self.code = code
        self.detail: Json = detail

    def body(self) -> Json:
        """Return the whole JSON answer."""
        return {"ok": False, "error": self.code, **self.detail}


class ControlError(Exception):
    """A test control or a page request that cannot be carried out; the message says what to do instead."""


def invalid_blocks(*reasons: str) -> ApiError:
    """Return the answer to blocks that break Block Kit's rules, each reason with its JSON pointer."""
    messages = [f"[ERROR] {reason}" for reason in reasons]
    return ApiError("invalid_blocks", errors=list(reasons), response_metadata={"messages": messages})
