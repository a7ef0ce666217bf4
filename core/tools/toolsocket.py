"""Calls of tools over the service's socket: `{"op": "tool", "token", "call", "name", "arguments"}` in one line."""

import re
from collections.abc import Mapping
from typing import Any

from core.domain.session import SessionRecord
from core.domain.tools import ToolAnswer, refused
from core.errors import CoreError
from core.names import new_request_id
from core.process.controlsocket import Peer
from core.session.credentials import session_of_token
from core.system import System
from core.tools.toolbox import Toolbox

WAIT_SECONDS = 90.0  #: the most that any tool takes that waits for no person
_CALL = re.compile(r"[A-Za-z0-9-]{8,64}")


class ToolSocket:
    """Answers `tool`. `{"wait": seconds}` tells at once that the call was heard; then comes `{"result": …}`."""

    def __init__(self, system: System, toolbox: Toolbox) -> None:
        self._system = system
        self._toolbox = toolbox

    def talk(self, line: Mapping[str, Any], peer: Peer) -> None:
        """Speak with one caller."""
        token, call, name = (str(line.get(key) or "") for key in ("token", "call", "name"))
        try:
            record = session_of_token(self._system, token)
        except CoreError as error:
            peer.send({"result": refused(error).to_json()})
            return
        longest = max(WAIT_SECONDS, self._system.settings.limits.approval_wait_seconds)
        if peer.send({"wait": longest}):
            caller = _SocketCaller(record, call if _CALL.fullmatch(call) else new_request_id(), peer)
            self._toolbox.serve(caller, name, line.get("arguments"))


class _SocketCaller:
    def __init__(self, record: SessionRecord, call: str, peer: Peer) -> None:
        self.record = record
        self.call = call
        self._peer = peer

    def reply(self, answer: ToolAnswer) -> bool:
        return self._peer.send({"result": answer.to_json()})

    def gone(self) -> bool:
        return self._peer.gone()
