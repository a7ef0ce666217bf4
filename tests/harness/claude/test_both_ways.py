"""Messages both ways through a thread and real Claude Code: in order, with files, and long answers."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from embedded.workspace import shapes
from tests.fakes.protocols import Messages
from tests.harness.claude.product import ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.elsewhere import somewhere_else
from tests.support.product import NAME
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("pasting")
SWALLOWS = ("the first swallow", "the second swallow", "the third swallow")
READ = '[[call Read {"file_path": "$FILE"}]]'
_PATH = re.compile(r"\(file: (/\S+) , text/plain, ([\d,]+) bytes\)")


def digest(text: str) -> str:
    """Return what tells one text from any other."""
    return hashlib.sha256(text.encode()).hexdigest()


def prose(size: int) -> str:
    """Return that many bytes of numbered lines, with letters of two and three bytes in them."""
    lines = [f"line {number:05} grüße 日本 {'x' * 60}" for number in range(size // 60)]
    text = "\n".join(lines).encode()[:size].decode(errors="ignore")
    return text + "." * (size - len(text.encode()))


@pytest.mark.parametrize("work", ["[[sleep 20]]", "[[tool bash sleep 20]]"], ids=["mid-turn", "mid-tool"])
@pytest.mark.capability("queue evidence")
def test_replies_while_a_turn_runs_keep_their_order(talking: ClaudeProduct, work: str) -> None:
    """Each is in Claude Code's own queue at once, seen by its marker and marked in the thread; each is taken once."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", f"work {work}", thread)
    talking.wait_state(f"work {work}", "confirmed")
    talking.wait_status("busy")

    sent = [talking.workspace.say("alice", "agents", text, thread) for text in SWALLOWS]
    for text in SWALLOWS:
        talking.wait_state(text, "accepted")
    for ts in sent:
        talking.workspace.wait_for_reaction("agents", ts, "eyes")
    wait_until(lambda: len(talking.queued()) >= len(SWALLOWS), "its record has each: it follows the hook's report", 10)
    queued = talking.queued()
    taken = [talking.state_of(text) for text in SWALLOWS]
    for ts in sent:
        talking.workspace.wait_for_reaction("agents", ts, "white_check_mark", 60)

    markers = talking.markers(*SWALLOWS)
    assert taken == ["accepted"] * 3
    assert [re.findall(r"#([a-z2-9]{6})\]", text) for text in queued] == [[marker] for marker in markers]
    assert [talking.moves(text) for text in SWALLOWS] == [["accepted", "confirmed"]] * 3
    whole = json.dumps(talking.model.requests()[-1].body["messages"])
    places = [whole.find(text) for text in SWALLOWS]
    assert -1 not in places
    assert places == sorted(places)
    assert [whole.count(f"#{marker}]") for marker in markers] == [1, 1, 1]


def test_a_file_of_100_kb_is_read_without_asking(talking: ClaudeProduct) -> None:
    """It is named in the message and lies as it was sent where Claude Code may read it."""
    thread = serve(talking)
    sent = prose(100_000)

    talking.workspace.say("alice", "agents", f"see this {READ}", thread, files={"report.txt": sent})
    talking.wait_reply(thread, "DONE:", 60)

    request = talking.wait_request("see this")
    [(path, size)] = _PATH.findall(request.user)
    assert size == "100,000"
    assert digest(Path(path).read_text()) == digest(sent)
    assert "line 00000 grüße 日本" in Messages().parse("", talking.model.requests("see this")[-1].body).results[-1]
    assert not talking.events("standing.asked")


def test_a_file_that_lies_elsewhere_gets_no_token(talking: ClaudeProduct, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request goes there, and the agent is told why it has no file."""
    thread = serve(talking)
    view = shapes.file_view
    with somewhere_else() as elsewhere:
        there = {"url_private": elsewhere.url, "url_private_download": elsewhere.url}
        monkeypatch.setattr(shapes, "file_view", lambda doc, base: view(doc, base) | there)

        talking.workspace.say("alice", "agents", "see this", thread, files={"report.txt": "x"})
        request = talking.wait_request("see this")

    assert "(a part of this message, report.txt, could not be read" in request.user
    assert "where the token must not go" in request.user
    assert elsewhere.seen == []


def test_a_message_of_100_kb_goes_by_file(talking: ClaudeProduct) -> None:
    """Claude Code is told where it lies, and reads it without asking."""
    serve(talking)
    file, text = talking.folder / "long.txt", prose(100_000)
    file.write_text(text)

    said = talking.cli("standing", "say", NAME, "--file", str(file), "--json")
    request = talking.wait_request(f"#{talking.markers(text)[0]}]")
    [path] = re.findall(r"Read all of it in (/\S+) :", request.user)
    read = f'please [[call Read {{"file_path": "{path}"}}]]'
    talking.cli("standing", "say", NAME, "--text", read)
    result = Messages().parse("", talking.wait_request("please", 2).body).results[-1]

    assert said.json["state"] == "confirmed"
    assert digest(Path(path).read_text()) == digest(text)
    assert "line 00000 grüße 日本" in result
    assert not talking.events("standing.asked")


def test_a_reply_as_long_as_slack_takes_is_whole(talking: ClaudeProduct) -> None:
    """Almost forty thousand characters, typed into the thread."""
    thread = serve(talking)
    text = prose(39_000)

    talking.workspace.say("alice", "agents", text, thread)
    request = talking.wait_request("line 00000")

    assert digest(request.user.partition("] ")[2]) == digest(text)


def markdown(size: int) -> str:
    """Return an answer of about that many bytes: paragraphs, and blocks of code that are longer than a message."""
    parts, number = list[str](), 0
    while sum(len(part) for part in parts) < size:
        number += 1
        parts.append(f"Paragraph {number} tells of heron {number}.")
        code = "\n".join(f"print({number}, {line})  # {'-' * 40}" for line in range(number * 20))
        parts.append(f"```python\n{code}\n```")
    return "\n\n".join([*parts, "That is all."])


def content(text: str) -> list[str]:
    """Return the lines that say something: fences and their languages are markup."""
    return [line for line in text.splitlines() if line.strip() and line not in ("```", "```python", "_python_")]


@pytest.mark.capability("turn edges")
def test_an_answer_of_20_kb_comes_in_parts(talking: ClaudeProduct) -> None:
    """Whole, in order, once; a block of code that a border falls into is a block in both parts."""
    thread = serve(talking)
    answer = markdown(20_000)
    talking.model.texts["long"] = answer

    talking.workspace.say("alice", "agents", "tell me all [[text long]]", thread)
    talking.wait_reply(thread, "That is all.", 60)

    parts = [text for text in talking.bot_replies(thread) if "heron" in text or "print(" in text]
    assert len(answer) > 20_000
    assert len(parts) > 4
    assert [line for part in parts for line in content(part)] == content(answer)
    assert all(part.count("```") % 2 == 0 for part in parts)
    fenced = [line for part in parts for block in part.split("```")[1::2] for line in content(block)]
    assert fenced == [line for line in content(answer) if line.startswith("print(")]


@pytest.mark.capability("turn edges")
def test_an_answer_of_60_kb_is_attached(talking: ClaudeProduct) -> None:
    """Its beginning is read in the thread, and the file holds it byte for byte."""
    thread = serve(talking)
    answer = markdown(60_000)
    talking.model.texts["long"] = answer

    talking.workspace.say("alice", "agents", "tell me all [[text long]]", thread)
    message = talking.workspace.wait_for_message(lambda m: bool(m.get("files")), 60)
    talking.wait_reply(thread, "The whole answer is attached", 30)

    whole = talking.workspace.do(lambda controls: controls.file_text(message["files"][0]["id"]))
    assert digest(whole) == digest(answer)
    assert message["thread_ts"] == thread
