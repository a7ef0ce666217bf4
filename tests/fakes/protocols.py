"""The four protocols by which harnesses ask a model, each as what a request says and as what is answered.

Messages      Anthropic  POST …/messages                                              Claude Code
Responses     OpenAI     POST …/responses                                             Codex
Completions   OpenAI     POST …/chat/completions                                      OpenCode
Generate      Google     POST …/models/MODEL:generateContent, :streamGenerateContent  Gemini CLI
"""

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from tests.fakes.turns import Piece, Reply, Turn, flat

Json = dict[str, Any]
Event = tuple[str, Any]  #: its name, "" for none, and its data
_DRIP_PAUSE = 0.2
#: what a harness adds to the words of people on its own account
_NOISE = re.compile(
    r"<(system-reminder|environment_context|user_instructions|permissions instructions|session_context|"
    r"collaboration_mode|skills_instructions|turn_aborted)>.*?</\1>",
    re.DOTALL,
)
_STEER = re.compile(
    r"The user sent a new message while you were working:\n(.*?)"
    r"(?:\n\nIMPORTANT: After|\n\nThis is how Claude Code surfaces|</system-reminder>|\Z)",
    re.DOTALL,
)
_DEFERRED = re.compile(r"deferred tools are now available via ToolSearch\..*?:\n((?:\S+(?:\n|\Z))+)", re.DOTALL)
_PASTE = re.compile(r'<pasted_content id="(\w+)">\n(.*?)\n</pasted_content id="\1">', re.DOTALL)
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Speech(Protocol):
    """One protocol."""

    def parse(self, path: str, body: Mapping[str, Any]) -> Turn:
        """Return what a request says."""
        ...

    def said(self, body: Mapping[str, Any]) -> list[str]:
        """Return every text of people in the conversation, in order, as the model was given it."""
        ...

    def whole(self, turn: Turn, reply: Reply) -> Json:
        """Return the answer as one object."""
        ...

    def events(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """Yield the answer as server-sent events, a text in pieces for `reply.drip` seconds."""
        ...

    def refusal(self, reply: Reply) -> tuple[Json, dict[str, str]]:
        """Return the error, as the real server words it, and the headers that it sends with it."""
        ...


def heard(texts: Sequence[str], part: str) -> tuple[tuple[Piece, ...], ...]:
    """Return each of the texts that holds the part, in the pieces that the model was given."""
    return tuple(_pieces(text) for text in texts if part in text)


def _clean(text: str) -> str:
    return _NOISE.sub("", text).strip()


def _drips(reply: Reply) -> Iterator[str]:
    """Yield the pieces of the text, the last at once, the others with a pause."""
    for _ in range(int(reply.drip / _DRIP_PAUSE)):
        yield "drip "
        time.sleep(_DRIP_PAUSE)
    yield reply.text


def _id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:24]}"


def _retries(reply: Reply) -> dict[str, str]:
    return {"x-should-retry": "false"} if reply.final else {}


def _words(reply: Reply) -> str:
    return reply.message or f"fake error {reply.error}"


def _turn(told: Sequence[tuple[str, str]], schemas: Mapping[str, Json], model: str, *, stream: bool) -> Turn:
    """Return what a conversation says in which each of `told` is a `user`'s text or a tool's `result`."""
    user, results = "", list[str]()
    for kind, text in told:
        if kind == "result":
            results.append(text)
        elif _clean(text):
            user, results = _clean(text), []
    return Turn(user, user, tuple(results), (), tuple(sorted(schemas)), model, stream, schemas)


# ---------------------------------------------------------------------------------------------------- Anthropic


class Messages:
    """Anthropic's Messages."""

    def parse(self, path: str, body: Mapping[str, Any]) -> Turn:
        """Return what a request says: text that was slipped into a running turn is no prompt."""
        said: list[str] = []
        results: list[str] = []
        steers: list[str] = []
        for message in body.get("messages", []):
            prompts, slipped = _said(message)
            steers += slipped
            if message.get("role") == "user":
                results += [
                    flat(block.get("content")) for block in _blocks(message) if block.get("type") == "tool_result"
                ]
                if prompts:
                    said, results, steers = [_typed(prompt) for prompt in prompts], [], []
        schemas = {tool["name"]: tool.get("input_schema") or {} for tool in body.get("tools") or [] if "name" in tool}
        deferred = {name for message in body.get("messages", []) for name in _deferred(message)} if schemas else set()
        return Turn(
            user="\n".join(said),
            last=said[-1] if said else "",
            results=tuple(results),
            steers=tuple(map(_typed, steers)),
            tools=tuple(sorted({*schemas, *deferred})),
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            schemas=schemas,
        )

    def said(self, body: Mapping[str, Any]) -> list[str]:
        """Return the texts of people."""
        return [text for message in body.get("messages", []) for kind in _said(message) for text in kind]

    def whole(self, turn: Turn, reply: Reply) -> Json:
        """Return a message."""
        block: Json = {"type": "text", "text": reply.text}
        if reply.call is not None:
            name, given = reply.call
            block = {"type": "tool_use", "id": _id("toolu_"), "name": name, "input": given}
        return {
            "id": _id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": turn.model,
            "content": [block],
            "stop_reason": "end_turn" if reply.call is None else "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.fresh,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": reply.cached,
                "output_tokens": reply.written,
            },
        }

    def events(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """Yield the events that carry a message."""
        return ((event["type"], event) for event in self._events(self.whole(turn, reply), reply))

    def _events(self, message: Json, reply: Reply) -> Iterator[Json]:
        block = message["content"][0]
        yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        opened = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        yield {"type": "content_block_start", "index": 0, "content_block": opened}
        if block["type"] == "text":
            for piece in _drips(reply):
                yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        else:
            given = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": 0, "delta": given}
        yield {"type": "content_block_stop", "index": 0}
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
        yield {"type": "message_stop"}

    def refusal(self, reply: Reply) -> tuple[Json, dict[str, str]]:
        """Return an error; a usage limit is told by the headers."""
        headers = _retries(reply)
        if reply.limit:
            headers |= {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-representative-claim": "five_hour",
                "anthropic-ratelimit-unified-reset": str(int(time.time() + reply.limit)),
                "retry-after": str(int(reply.limit)),
            }
        kind = _ERROR_TYPES.get(reply.error, "api_error")
        return {"type": "error", "error": {"type": kind, "message": _words(reply)}}, headers


def _said(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return what the message says for people: prompts, and what was slipped into a running turn."""
    prompts, slipped = [], []
    for block in _blocks(message):
        text = str(block.get("text", "")) if block.get("type") == "text" else ""
        found = [steer.strip() for steer in _STEER.findall(text)] if message.get("role") != "assistant" else []
        slipped += found
        if message.get("role") == "user" and not found and _clean(text):
            prompts.append(_clean(text))
    return prompts, slipped


def _deferred(message: Mapping[str, Any]) -> list[str]:
    texts = [flat(block) for block in _blocks(message)] if message.get("role") == "system" else []
    return [name for text in texts for names in _DEFERRED.findall(text) for name in names.split()]


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _pieces(text: str) -> tuple[Piece, ...]:
    pieces, end = [], 0
    for found in _PASTE.finditer(text):
        pieces += [Piece(text[end : found.start()].strip()), Piece(found[2].strip(), pasted=True)]
        end = found.end()
    pieces.append(Piece(text[end:].strip()))
    return tuple(piece for piece in pieces if piece.text)


def _typed(text: str) -> str:
    """Return the text without what marks a part of it as pasted."""
    return "\n".join(piece.text for piece in _pieces(text))


# ------------------------------------------------------------------------------------------------------- OpenAI


def _openai_refusal(reply: Reply) -> tuple[Json, dict[str, str]]:
    if reply.limit:
        until = {"resets_at": int(time.time() + reply.limit), "resets_in_seconds": int(reply.limit)}
        error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", **until}
        return {"error": error}, _retries(reply)
    kind = _ERROR_TYPES.get(reply.error, "server_error")
    return {"error": {"message": _words(reply), "type": kind, "code": str(reply.error)}}, _retries(reply)


class Responses:
    """OpenAI's Responses."""

    def parse(self, path: str, body: Mapping[str, Any]) -> Turn:
        """Return what a request says; tools of MCP servers come in groups."""
        told = [
            ("result", flat(item.get("output"))) if item.get("type", "").endswith("_call_output") else ("user", text)
            for item, text in self._items(body)
        ]
        schemas, groups = dict[str, Json](), dict[str, str]()
        for tool in body.get("tools") or []:
            if tool.get("type") == "function":
                schemas[tool["name"]] = tool.get("parameters") or {}
            for inner in tool.get("tools") or [] if tool.get("type") == "namespace" else ():
                schemas[inner["name"]] = inner.get("parameters") or {}
                groups[inner["name"]] = tool["name"]
        turn = _turn(told, schemas, str(body.get("model", "")), stream=bool(body.get("stream")))
        return Turn(**{**vars(turn), "groups": groups})

    def said(self, body: Mapping[str, Any]) -> list[str]:
        """Return the texts of people."""
        return [_clean(text) for _, text in self._items(body) if _clean(text)]

    def _items(self, body: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
        """Return each item of the conversation with what a person says by it, "" where it is no person's."""
        items = body.get("input") or []
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        return [(item, flat(item.get("content")) if item.get("role") == "user" else "") for item in items]

    def whole(self, turn: Turn, reply: Reply) -> Json:
        """Return a response of one item."""
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        item: Json = {"type": "message", "id": _id("msg_"), "role": "assistant", "content": [part]}
        if reply.call is not None:
            name, given = reply.call
            item = {"type": "function_call", "id": _id("fc_"), "call_id": _id("call_"), "name": name}
            item |= {"arguments": json.dumps(given)}
            item |= {"namespace": turn.groups[name]} if name in turn.groups else {}
        return {
            "id": _id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": turn.model,
            "status": "completed",
            "output": [{**item, "status": "completed"}],
            "usage": {
                "input_tokens": reply.fresh + reply.cached,
                "input_tokens_details": {"cached_tokens": reply.cached},
                "output_tokens": reply.written,
                "output_tokens_details": {"reasoning_tokens": reply.thought},
                "total_tokens": reply.fresh + reply.cached + reply.written,
            },
            "error": None,
        }

    def events(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """Yield the events that carry a response, in a numbered order."""
        for number, (name, data) in enumerate(self._events(self.whole(turn, reply), reply)):
            yield name, {"type": name, "sequence_number": number, **data}

    def _events(self, whole: Json, reply: Reply) -> Iterator[tuple[str, Json]]:
        [item] = whole["output"]
        begun: Json = {"content": []} if reply.call is None else {"arguments": ""}
        yield "response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}
        yield "response.output_item.added", {"output_index": 0, "item": {**item, **begun, "status": "in_progress"}}
        if reply.call is None:
            where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            yield "response.content_part.added", {**where, "part": {**item["content"][0], "text": ""}}
            for piece in _drips(reply):
                yield "response.output_text.delta", {**where, "delta": piece}
            yield "response.output_text.done", {**where, "text": reply.text}
            yield "response.content_part.done", {**where, "part": item["content"][0]}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        yield "response.completed", {"response": whole}

    def refusal(self, reply: Reply) -> tuple[Json, dict[str, str]]:
        """Return an error; a usage limit tells when it ends."""
        return _openai_refusal(reply)


class Completions:
    """OpenAI's chat completions."""

    def parse(self, path: str, body: Mapping[str, Any]) -> Turn:
        """Return what a request says."""
        kinds = {"user": "user", "tool": "result"}
        messages = [message for message in body.get("messages") or [] if message.get("role") in kinds]
        told = [(kinds[message["role"]], flat(message.get("content"))) for message in messages]
        functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
        schemas = {function["name"]: function.get("parameters") or {} for function in functions}
        return _turn(told, schemas, str(body.get("model", "")), stream=bool(body.get("stream")))

    def said(self, body: Mapping[str, Any]) -> list[str]:
        """Return the texts of people."""
        texts = [flat(each.get("content")) for each in body.get("messages") or [] if each.get("role") == "user"]
        return [_clean(text) for text in texts if _clean(text)]

    def whole(self, turn: Turn, reply: Reply) -> Json:
        """Return a completion."""
        message: Json = {"role": "assistant", "content": reply.text}
        if reply.call is not None:
            name, given = reply.call
            function = {"name": name, "arguments": json.dumps(given)}
            call = {"id": _id("call_"), "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "stop" if reply.call is None else "tool_calls"
        return self._envelope(turn, {"message": message, "finish_reason": reason}) | {"usage": self._usage(reply)}

    def events(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """Yield the chunks that carry a completion, and the word that ends them."""
        message = self.whole(turn, reply)["choices"][0]["message"]
        reason = "stop" if reply.call is None else "tool_calls"
        if reply.call is None:
            deltas: Iterator[Json] = ({"role": "assistant", "content": piece} for piece in _drips(reply))
        else:
            calls = [{**message["tool_calls"][0], "index": 0}]
            deltas = iter([{"role": "assistant", "tool_calls": calls}])
        for delta in deltas:
            yield "", self._envelope(turn, {"delta": delta, "finish_reason": None}, chunk=True)
        last = self._envelope(turn, {"delta": {}, "finish_reason": reason}, chunk=True)
        yield "", last | {"usage": self._usage(reply)}
        yield "", "[DONE]"

    def _envelope(self, turn: Turn, choice: Json, *, chunk: bool = False) -> Json:
        kind = "chat.completion.chunk" if chunk else "chat.completion"
        said = {"id": _id("chatcmpl-"), "object": kind, "created": int(time.time()), "model": turn.model}
        return {**said, "choices": [{"index": 0, **choice}]}

    def _usage(self, reply: Reply) -> Json:
        sent = reply.fresh + reply.cached
        return {
            "prompt_tokens": sent,
            "prompt_tokens_details": {"cached_tokens": reply.cached},
            "completion_tokens": reply.written,
            "completion_tokens_details": {"reasoning_tokens": reply.thought},
            "total_tokens": sent + reply.written,
        }

    def refusal(self, reply: Reply) -> tuple[Json, dict[str, str]]:
        """Return an error; a usage limit tells when it ends."""
        return _openai_refusal(reply)


# ------------------------------------------------------------------------------------------------------- Google


class Generate:
    """Google's generateContent."""

    def parse(self, path: str, body: Mapping[str, Any]) -> Turn:
        """Return what a request says.

        After a prompt that was cut off Gemini CLI sends it once more, in one message with
        the next: the last part counts.
        """
        told: list[tuple[str, str]] = []
        for message in body.get("contents") or []:
            parts = message.get("parts") or [] if message.get("role", "user") == "user" else []
            responses = [part["functionResponse"].get("response") for part in parts if "functionResponse" in part]
            told += [("result", flat(response)) for response in responses]
            told += [("user", part["text"]) for part in parts if part.get("text")]
        declared = [one for group in body.get("tools") or [] for one in group.get("functionDeclarations") or []]
        schemas = {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") or {} for one in declared}
        named = re.search(r"/models/([^:/]+):", path)
        return _turn(told, schemas, named[1] if named else "", stream=":stream" in path)

    def said(self, body: Mapping[str, Any]) -> list[str]:
        """Return the texts of people."""
        people = [each for each in body.get("contents") or [] if each.get("role", "user") == "user"]
        texts = [str(part.get("text") or "") for message in people for part in message.get("parts") or []]
        return [_clean(text) for text in texts if _clean(text)]

    def whole(self, turn: Turn, reply: Reply) -> Json:
        """Return a response of one candidate."""
        part: Json = {"text": reply.text}
        if reply.call is not None:
            part = {"functionCall": {"name": reply.call[0], "args": reply.call[1]}}
        return self._response(turn, reply, part, over=True)

    def events(self, turn: Turn, reply: Reply) -> Iterator[Event]:
        """Yield responses, the last of which says that it is over."""
        if reply.call is not None:
            yield "", self.whole(turn, reply)
            return
        for piece in _drips(reply):
            yield "", self._response(turn, reply, {"text": piece})
        yield "", self._response(turn, reply, {"text": ""}, over=True)

    def _response(self, turn: Turn, reply: Reply, part: Json, *, over: bool = False) -> Json:
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}}
        usage = {
            "promptTokenCount": reply.fresh + reply.cached,
            "cachedContentTokenCount": reply.cached,
            "candidatesTokenCount": reply.tokens,
            "thoughtsTokenCount": reply.thought,
            "totalTokenCount": reply.fresh + reply.cached + reply.written,
        }
        return {
            "candidates": [{**candidate, "finishReason": "STOP"} if over else candidate],
            "usageMetadata": usage,
            "modelVersion": turn.model,
            "responseId": uuid.uuid4().hex,
        }

    def refusal(self, reply: Reply) -> tuple[Json, dict[str, str]]:
        """Return an error; a limit tells after how many seconds to try again."""
        status = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
        error: Json = {"code": reply.error, "message": _words(reply), "status": status.get(reply.error, "INTERNAL")}
        if reply.limit:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{int(reply.limit)}s"}]
        return {"error": error}, _retries(reply)


def speech_of(path: str) -> Speech | None:
    """Return the protocol of a request to that path; None where it asks no model."""
    if path.lower().endswith("generatecontent"):
        return Generate()
    spoken: Mapping[str, Speech] = {"/messages": Messages(), "/responses": Responses()}
    spoken = {**spoken, "/chat/completions": Completions()}
    return next((speech for ending, speech in spoken.items() if path.endswith(ending)), None)
