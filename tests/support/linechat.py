"""A second chat, as a package of its own would be: lines of JSON over a Unix socket. Core knows nothing of it.

`LineChannel` is what its entry point names. `LineServer` is the other side: the room that people sit in.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from core.base.errors import ChannelError
from core.base.redaction import Redactor
from core.config.blocks import Block
from core.config.chats import ChatInfo
from core.model.asking import Role
from core.model.channel import CoreApi, IncomingPress, IncomingReply, Posted, Swept, WebHook
from core.model.health import Finding, State
from core.model.live import LiveRow, LiveShown
from core.model.posts import Mark, NewPost, OutboundKind, OwnPost, ThreadSeen

KIND, TEAM = "line", "here"
ENTRY_POINTS = """\
[the_loop.channels]
line = tests.support.linechat:LineChannel

[the_loop.chats]
line = tests.support.linechat:LINE
"""
LINE = ChatInfo("Line Chat", settings="tests.support.linechat:LineSettings")


class LineSettings(Block):
    """Line Chat."""

    enabled: bool = False
    channel: str = ""
    socket: str = Field("", description="Where its room is")
    authorized_users: list[str] = Field(default_factory=list)


class LineChannel:
    """Implements `core.model.channel.Channel`."""

    kind = KIND

    def __init__(self, block: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._settings = LineSettings.model_validate(block)

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Hear what people say and press until the service stops."""
        door.connected(KIND, True, "in the room")
        for bound in door.threads(KIND, TEAM):
            door.swept(KIND, TEAM, Swept(bound.channel, bound.thread, bound.thread, "", 0, ""))
        heard = 0
        while not stopping():
            for word in self._ask(do="listen", after=heard)["words"]:
                heard += 1
                self._take(door, word)

    def _take(self, door: CoreApi, word: dict[str, Any]) -> None:
        place = (KIND, TEAM, self._settings.channel, word["thread"], word["ts"])
        who = (word["author"], word["author"], TEAM)
        if "action" in word:
            door.press(IncomingPress(*place, *who, is_bot=False, action=word["action"], target=word["target"]))
            return
        reply = IncomingReply(*place, *who, is_bot=False, is_self=False, shape="plain", text=word["text"])
        door.receive([reply], lambda verdicts: None)

    def live(self) -> bool:
        """Show no turn as it runs."""
        return False

    def begin_live(self, row: LiveRow) -> Posted:
        """Nobody asks for it."""
        raise NotImplementedError

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Nobody asks for it."""
        raise NotImplementedError

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """Nobody asks for it."""
        raise NotImplementedError

    def remove_live(self, row: LiveRow) -> None:
        """Nobody asks for it."""
        raise NotImplementedError

    def find_live(self, row: LiveRow) -> Posted | None:
        """Find none."""
        return None

    def live_parts(self, post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
        """Return what it is sent as at any rate."""
        return self.parts(post)

    def live_pieces(self, post: NewPost, shown: LiveShown) -> tuple[str, ...]:
        """Return none."""
        return ()

    def sweeps(self) -> bool:
        """Replies are read."""
        return True

    def presses(self) -> bool:
        """Presses arrive."""
        return True

    def typed(self, role: Role) -> str:
        """Take no commands."""
        return ""

    def default_channel(self) -> str:
        """Return the room."""
        return self._settings.channel

    def authorized(self, author: str) -> bool:
        """Return whether somebody is on the list."""
        return author in self._settings.authorized_users

    def has_role(self, author: str, role: Role) -> bool:
        """Everybody on the list has every role."""
        return self.authorized(author)

    def everybody(self) -> tuple[str, ...]:
        """Return who is on the list."""
        return tuple(sorted(self._settings.authorized_users))

    def late(self, ts: str) -> str:
        """Nothing is too late."""
        return ""

    def look_again(self) -> None:
        """No message has files."""

    def redact_with(self, redactor: Redactor) -> None:
        """Posts hold no secrets of a test."""

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Say it in the room."""
        said = {"text": post.text, "kind": post.kind.value, "name": post.name, "uid": post.uid, "id": post.id}
        buttons = [{"label": one.label, "action": one.action, "target": one.target} for one in post.buttons]
        ts = self._ask(do="post", thread=thread, buttons=buttons, **said)["ts"]
        return Posted(TEAM, channel, ts)

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Say it in the place of what was said."""
        buttons = [{"label": one.label, "action": one.action, "target": one.target} for one in post.buttons]
        self._ask(do="update", ts=ts, text=post.text, buttons=buttons)
        return Posted(TEAM, channel, ts)

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for what we have said."""
        found = next((said for said in self._all() if said.get("id") == post_id), None)
        return Posted(TEAM, channel, found["ts"]) if found else None

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Return what we have said in the thread."""
        there = [said for said in self._all() if thread in (said["ts"], said["thread"])]
        own = tuple(OwnPost(m["ts"], m["id"], m["kind"], f"standing:{m['name']}", m["uid"]) for m in there if "id" in m)
        return ThreadSeen(TEAM, channel, thread, max((m["ts"] for m in there), default=thread), own)

    def wants(self, kind: OutboundKind) -> bool:
        """Everything is shown."""
        return True

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Nothing is too long."""
        return (post,)

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Line Chat has no reactions."""

    def status(self, channel: str, thread: str, text: str) -> None:
        """Line Chat shows no status."""

    def link(self, channel: str, thread: str) -> str:
        """Return none: no browser shows it."""
        return ""

    def webhook(self) -> WebHook | None:
        """Take nothing over HTTP."""
        return None

    def echoes(self) -> bool:
        """No post comes back as an event."""
        return False

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post nothing."""
        return lambda: None

    def check(self, channels: Collection[str] = ()) -> tuple[Finding, ...]:
        """Return whether somebody is in the room."""
        return (Finding("room", State.OK, f"{len(self._all())} messages"),)

    def manifest(self, url: str = "") -> str:
        """Line Chat needs no app."""
        return "none: true\n"

    def _all(self) -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = self._ask(do="all")["said"]
        return said

    def _ask(self, **question: Any) -> dict[str, Any]:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(20)
                line.connect(self._settings.socket)
                line.sendall(json.dumps(question).encode() + b"\n")
                answer: dict[str, Any] = json.loads(line.makefile("rb").readline())
                return answer
        except (OSError, ValueError) as error:
            raise ChannelError(f"Line Chat: {error}", "let the room be open", transient=True) from error


class LineServer:
    """The room: keeps what is said, and tells the channel what people do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[dict[str, Any]] = []
        self._words: list[dict[str, Any]] = []  #: what people did, for the channel
        self._changed = threading.Condition()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._run, daemon=True).start()

    def say(self, author: str, thread: str, text: str) -> str:
        """Let somebody write in a thread, and return the message's time stamp."""
        with self._changed:
            message = {"ts": self._now(), "thread": thread, "author": author, "text": text}
            self.said.append(message)
            self._words.append(message)
            self._changed.notify_all()
            return str(message["ts"])

    def press(self, author: str, message: Mapping[str, Any], label: str) -> None:
        """Let somebody press a button of a message."""
        [button] = [one for one in message["buttons"] if one["label"] == label]
        word = {"ts": message["ts"], "thread": message["thread"] or message["ts"], "author": author}
        with self._changed:
            self._words.append({**word, "action": button["action"], "target": button["target"]})
            self._changed.notify_all()

    def wait(self, what: str, holds: Callable[[dict[str, Any]], object], seconds: float = 40.0) -> dict[str, Any]:
        """Return the first message that `holds`. Fails with all that was said."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = next(filter(holds, self.said), None)
                if found is not None:
                    return dict(found)
                left = deadline - time.monotonic()
                assert left > 0, f"{what}; there is {[message['text'] for message in self.said]}"
                self._changed.wait(left)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, self._changed:
            question = json.loads(line.makefile("rb").readline())
            for answer in self._answered(question):
                line.sendall(json.dumps(answer).encode() + b"\n")

    def _answered(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        match question.pop("do"):
            case "listen":
                self._changed.wait_for(lambda: len(self._words) > question["after"], 0.2)
                yield {"words": self._words[question["after"] :]}
            case "post":
                self.said.append({"ts": self._now(), "author": "the-loop", **question})
                self._changed.notify_all()
                yield {"ts": self.said[-1]["ts"]}
            case "update":
                next(message for message in self.said if message["ts"] == question["ts"]).update(question)
                self._changed.notify_all()
                yield {}
            case "all":
                yield {"said": self.said}

    def _now(self) -> str:
        """Return a time stamp that no other message has."""
        now = f"{time.time():.6f}"
        return max(now, f"{float(self.said[-1]['ts']) + 0.000001:.6f}") if self.said else now
