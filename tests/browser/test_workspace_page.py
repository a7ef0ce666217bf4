"""The workspace's page in a real browser: what a person sees and does."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from embedded.workspace.server import Workspace
from tests.browser.cdp import Tab, browser_tab

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
CONFIRM = {
    "title": {"type": "plain_text", "text": "Stop it?"},
    "text": {"type": "mrkdwn", "text": "The turn *ends*."},
    "confirm": {"type": "plain_text", "text": "Stop"},
    "deny": {"type": "plain_text", "text": "Keep"},
}
BLOCKS: list[dict[str, Any]] = [
    {"type": "header", "text": {"type": "plain_text", "text": "scribe asks"}},
    {"type": "section", "text": {"type": "mrkdwn", "text": "run *this*?\n```make dist```"}},
    {
        "type": "actions",
        "elements": [
            {"type": "button", "action_id": "allow", "value": "7", "text": {"type": "plain_text", "text": "Allow"}},
            {"type": "button", "action_id": "stop", "confirm": CONFIRM, "text": {"type": "plain_text", "text": "Stop"}},
        ],
    },
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "waits _ten_ minutes"}]},
]


@pytest_asyncio.fixture
async def workspace() -> AsyncIterator[Workspace]:
    """A workspace on the test's own loop; what nobody acknowledges fails fast."""
    running = Workspace(ack_seconds=0.3, retry_scale=0.001)
    await running.start()
    yield running
    await running.stop()


@pytest_asyncio.fixture
async def tab(workspace: Workspace, tmp_path: Path) -> AsyncIterator[Tab]:
    """The page, opened by its link; at the end it must have complained of nothing."""
    async with browser_tab(tmp_path / "profile") as opened:
        await opened.resize(1280, 800)
        await opened.open(workspace.page_url)
        await opened.until("!document.querySelector('#app').hidden && location.search === ''")
        yield opened
        assert opened.complaints == []


async def test_page_without_its_link_shows_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """Whoever has only the address sees an explanation, no channel and no message."""
    workspace.controls.say("alice", "agents", "secret")
    async with browser_tab(tmp_path / "profile") as stranger:
        await stranger.open(workspace.url)
        await stranger.until("!document.querySelector('#locked').hidden")

        assert await stranger.evaluate("document.querySelector('#app').hidden") is True
        assert "secret" not in await stranger.evaluate("document.body.textContent")


async def test_empty_channel_says_what_to_do(tab: Tab) -> None:
    """An empty channel has words, a named message box, and nothing that looks broken."""
    seen = await tab.evaluate("document.querySelector('#channel-empty').innerText")
    placeholder = await tab.evaluate("document.querySelector('#channel-input').placeholder")

    assert "Nothing here yet" in seen
    assert placeholder == "Message #agents as you"


async def test_enter_sends_and_shift_enter_breaks_the_line(workspace: Workspace, tab: Tab) -> None:
    """Enter posts what was typed, as the chosen person; Shift+Enter adds a line."""
    await tab.type("#channel-input", "first")
    await tab.press("Enter", shift=True)
    await tab.call("Input.insertText", text="second")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('#channel-messages .message').length === 1")

    message = workspace.controls.messages("agents")[0]
    assert message["text"] == "first\nsecond"
    assert message["user"] == workspace.controls.user("you").id
    assert await tab.evaluate("document.querySelector('#channel-input').value") == ""
    assert await tab.evaluate("document.activeElement.id") == "channel-input"


async def test_messages_of_others_appear_by_themselves(workspace: Workspace, tab: Tab) -> None:
    """What others post, edit, delete and react with is seen without a reload."""
    ts = workspace.controls.say("alice", "agents", "hello there")
    await _shown(tab, "hello there")

    workspace.controls.edit("agents", ts, "hello everybody")
    await _shown(tab, "hello everybody")
    workspace.controls.react("bob", "agents", ts, "eyes")
    label = await tab.until("document.querySelector('.reaction')?.getAttribute('aria-label')")
    workspace.controls.delete("agents", ts)
    await tab.until("document.querySelectorAll('#channel-messages .message').length === 0")

    assert label == "eyes, 1, by bob"


async def test_thread_is_read_and_answered_beside_the_channel(workspace: Workspace, tab: Tab) -> None:
    """The reply count opens the thread; a reply goes there; Escape closes it."""
    parent = workspace.controls.say_as_bot("the-loop", "agents", "standing:scribe is up")
    workspace.controls.say("alice", "agents", "go on", parent)
    await tab.click(".thread-link")
    await tab.until("document.activeElement.id === 'thread-input'")

    await tab.type("#thread-input", "and then?")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('#thread-messages .message').length === 3")
    await tab.press("Escape")
    await tab.until("document.querySelector('#thread-pane').hidden")

    assert [reply["text"] for reply in workspace.controls.replies("agents", parent)] == ["go on", "and then?"]
    assert "2 replies" in await tab.evaluate("document.querySelector('.thread-link').innerText")


async def test_draft_stays_with_its_thread(workspace: Workspace, tab: Tab) -> None:
    """What is half-written for one thread is not sent to another, and is there again on return."""
    first, second = (workspace.controls.say("alice", "agents", text) for text in ("first", "second"))
    await _shown(tab, "second")
    await tab.evaluate(f"location.hash = '#' + {json.dumps(workspace.controls.channel('agents').id)} + '/{first}'")
    await tab.until("document.querySelector('#thread-messages').textContent.includes('first')")
    await tab.type("#thread-input", "for the first")

    await tab.evaluate(f"location.hash = location.hash.replace('{first}', '{second}')")
    await tab.until("document.querySelector('#thread-messages').textContent.includes('second')")
    elsewhere = await tab.evaluate("document.querySelector('#thread-input').value")
    await tab.evaluate("history.back()")
    await tab.until("document.querySelector('#thread-messages').textContent.includes('first')")

    assert elsewhere == ""
    assert await tab.evaluate("document.querySelector('#thread-input').value") == "for the first"


async def test_hostile_text_stays_text(workspace: Workspace, tab: Tab) -> None:
    """Markup in messages, blocks, names and links is shown, never run."""
    workspace.controls.say("alice", "agents", HOSTILE)
    workspace.controls.join(workspace.controls.add_user("eve", "<b>eve</b>"), "agents")
    await _api(workspace).chat_postMessage(channel="agents", text=f"<javascript:alert(1)|click> {HOSTILE}")
    await _api(workspace).chat_postMessage(channel="agents", markdown_text=f"[click](javascript:alert(1)) {HOSTILE}")

    await tab.until("document.querySelectorAll('#channel-messages .message').length === 4")

    inside = "document.querySelector('#channel-messages').querySelectorAll('img, script, a[href^=javascript]').length"
    assert await tab.evaluate(inside) == 0
    assert await tab.evaluate("document.title") == "#agents · Loopback"
    assert HOSTILE in await tab.evaluate("document.querySelector('.message .text').textContent")


async def test_blocks_are_drawn_and_buttons_pressed(workspace: Workspace, tab: Tab) -> None:
    """Header, section, code, buttons and context are shown; a click that no app takes is told."""
    await _api(workspace).chat_postMessage(channel="agents", text="fallback", blocks=BLOCKS)
    await _shown(tab, "scribe asks")

    shown = await tab.evaluate("document.querySelector('.blocks').innerText")
    await tab.click(".actions .button")
    toast = await tab.until("document.querySelector('.toast')?.innerText")

    assert await tab.evaluate("document.querySelector('.blocks pre code').textContent") == "make dist"
    assert await tab.evaluate("document.querySelector('.blocks .context em').textContent") == "ten"
    assert "fallback" not in shown
    assert "dispatch_failed" in toast


async def test_button_with_a_question_asks_first(workspace: Workspace, tab: Tab) -> None:
    """`confirm` opens a dialog; keeping sends nothing, confirming sends the click."""
    await _api(workspace).chat_postMessage(channel="agents", text="fallback", blocks=BLOCKS)
    await tab.click(".actions .button:nth-child(2)")
    await tab.until("document.querySelector('#confirm').open")
    title = await tab.evaluate("document.querySelector('#confirm-title').textContent")

    await tab.click("#confirm-no")
    await tab.until("!document.querySelector('#confirm').open")
    after_no = await tab.evaluate("document.querySelectorAll('.toast').length")
    await tab.click(".actions .button:nth-child(2)")
    await tab.click("#confirm-yes")
    await tab.until("document.querySelector('.toast') !== null")

    assert (title, after_no) == ("Stop it?", 0)


async def test_a_choice_counts_once_it_is_confirmed(workspace: Workspace, tab: Tab) -> None:
    """A select with `confirm` asks; after *Keep* it shows what it showed before, and nothing was sent."""
    options = [{"text": {"type": "plain_text", "text": name}, "value": name} for name in ("scribe", "digger")]
    select = {"type": "static_select", "action_id": "which", "options": options, "confirm": CONFIRM}
    select["placeholder"] = {"type": "plain_text", "text": "Choose a session"}
    block = {"type": "actions", "elements": [select]}
    await _api(workspace).chat_postMessage(channel="agents", text="fallback", blocks=[block])
    choose = "(() => { const s = document.querySelector('select.choice'); s.value = 'digger';"
    choose += "s.dispatchEvent(new Event('change')); })()"
    await tab.until("document.querySelector('select.choice') !== null")
    await tab.evaluate(choose)
    await tab.until("document.querySelector('#confirm').open")
    await tab.click("#confirm-no")
    await tab.until("!document.querySelector('#confirm').open")
    kept = await tab.evaluate(
        "document.querySelector('select.choice').value + document.querySelectorAll('.toast').length"
    )
    await tab.evaluate(choose)
    await tab.click("#confirm-yes")
    await tab.until("document.querySelector('.toast') !== null")

    assert kept == "0"


async def test_command_is_answered_to_its_caller_alone(workspace: Workspace, tab: Tab) -> None:
    """A line that begins with a slash runs; the answer is marked as visible to this person only."""
    await tab.type("#channel-input", "/the-loop status")
    await tab.press("Enter")
    await _shown(tab, "dispatch_failed")
    note = await tab.evaluate("document.querySelector('.ephemeral .note').textContent")

    await tab.evaluate(_choose(workspace, "alice"))
    await tab.until("document.querySelectorAll('.ephemeral').length === 0")

    assert note == "Only visible to you"
    assert workspace.controls.messages("agents") == []


async def test_answers_to_commands_stand_apart(workspace: Workspace, tab: Tab) -> None:
    """Each has its head with the time in full, and a line parts it from the one before."""
    for count in (1, 2):
        await tab.type("#channel-input", "/the-loop status")
        await tab.press("Enter")
        await tab.until(f"document.querySelectorAll('.ephemeral').length === {count}")

    hidden = await tab.evaluate("document.querySelectorAll('.ephemeral .unseen, .ephemeral .gutter').length")
    line = await tab.evaluate("getComputedStyle(document.querySelectorAll('.ephemeral')[1]).borderTopWidth")

    assert (hidden, line) == (0, "1px")


async def test_nothing_lies_over_what_stands_below_or_beside_a_message(workspace: Workspace, tab: Tab) -> None:
    """The time in the margin ends before the text, and the mark of an edit stays clear of the count of replies."""
    workspace.controls.say("alice", "agents", "first")
    parent = workspace.controls.say("alice", "agents", "second")
    workspace.controls.say("alice", "agents", "go on", parent)
    workspace.controls.edit("agents", parent, "the second")
    await tab.until("Boolean(document.querySelector('.edited') && document.querySelector('.thread-link'))")

    box = "document.querySelector('{}').getBoundingClientRect()"
    below = await tab.evaluate(f"{box.format('.thread-link')}.top - {box.format('.edited')}.bottom")
    beside = await tab.evaluate(f"{box.format('.follows .body')}.left - {box.format('.gutter')}.right")

    assert below >= 0
    assert beside > 0


async def test_dates_are_shown_in_the_readers_time(workspace: Workspace, tab: Tab) -> None:
    """A date's tokens are filled in; of one that is not known here the fallback is shown."""
    date = "<!date^1796089092^{time_secs} ({date_short_pretty})|2026-12-01 01:38:12 UTC>"
    await _api(workspace).chat_postMessage(channel="agents", text=f"back at {date}, <!date^1^{{ago}}|long ago>")
    await _shown(tab, "back at")

    shown = await tab.evaluate("document.querySelector('.message .text').textContent")
    title = await tab.evaluate("document.querySelector('.text time').title")

    assert re.fullmatch(r"back at 01:38:12( AM)? \((today|yesterday|tomorrow|Dec 1, 2026)\), long ago", shown)
    assert title == "2026-12-01 01:38:12 UTC"


async def test_files_are_sent_and_opened(workspace: Workspace, tab: Tab) -> None:
    """What is chosen goes with the message, a picture is shown, and what could run is opened as text alone."""
    files = "[new File(['a,b'], 'table.csv'), new File(['<script>1</script>'], 'page.html', {type: 'text/html'})]"
    gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    pixel = f"Uint8Array.from(atob({json.dumps(gif)}), (letter) => letter.charCodeAt(0))"
    chosen = f"[...{files}, new File([{pixel}], 'dot.gif')].forEach((file) => data.items.add(file))"
    await tab.evaluate(
        f"(() => {{ const data = new DataTransfer(); {chosen}; const box = document.querySelector('#channel-files');"
        " box.files = data.files; box.dispatchEvent(new Event('change')); })()"
    )
    await tab.until("document.querySelectorAll('#channel-chosen li').length === 3")
    await tab.click("#channel-form .send")
    await tab.until(
        "document.querySelectorAll('.message a.file').length === 3 && !!document.querySelector('.attached img')"
    )

    [message] = workspace.controls.messages("agents")
    opened = (
        "fetch(document.querySelectorAll('a.file')[1].href).then(async (found) => [found.headers.get('Content-Type'), "
    )
    opened += "found.headers.get('Content-Security-Policy').startsWith('sandbox'), await found.text()])"

    assert [file["mimetype"] for file in message["files"]] == ["text/csv", "text/html", "image/gif"]
    assert await tab.evaluate(opened) == ["text/plain; charset=utf-8", True, "<script>1</script>"]
    assert await tab.until("document.querySelector('.attached img').naturalWidth === 1")
    assert await tab.evaluate("document.querySelector('#channel-chosen').hidden") is True
    assert await tab.evaluate("fetch('/page/file/F1').then((found) => found.status)") == 404
    assert "404" in tab.complaints.pop()


async def test_own_messages_are_edited_and_deleted(workspace: Workspace, tab: Tab) -> None:
    """In place, with mentions as they were typed; another's message has no such tools, and the server refuses it."""
    other = workspace.controls.say("alice", "agents", "hers")
    ts = workspace.controls.say("you", "agents", "ask @bob & co")
    await _shown(tab, "ask @bob")
    await tab.click(f'[data-ts="{ts}"] [data-focus="tool/edit"]')
    before = await tab.until("document.querySelector('.editor textarea')?.value")
    await tab.evaluate("document.querySelector('.editor textarea').value = 'ask @alice'")
    await tab.press("Enter")
    await tab.until("document.querySelector('.edited') !== null")
    edited = workspace.controls.messages("agents")[1]["text"]

    await tab.click(f'[data-ts="{ts}"] [data-focus="tool/delete"]')
    await tab.click("#confirm-yes")
    await tab.until("document.querySelectorAll('#channel-messages .message').length === 1")
    body = json.dumps({"as": "you", "channel": "agents", "ts": other})
    head = "{method: 'POST', headers: {'Content-Type': 'application/json'}, body: " + json.dumps(body) + "}"
    refused = await tab.evaluate(f"fetch('/page/delete', {head}).then((found) => found.status)")

    assert before == "ask @bob & co"
    assert edited == f"ask <@{workspace.controls.user('alice').id}>"
    assert await tab.evaluate("document.querySelectorAll('[data-focus=\"tool/edit\"]').length") == 0
    assert refused == 409
    assert [message["text"] for message in workspace.controls.messages("agents")] == ["hers"]
    assert "409" in tab.complaints.pop()


async def test_what_the_app_does_stands_below_its_thread(workspace: Workspace, tab: Tab) -> None:
    """Until it posts there."""
    root = (await _api(workspace).chat_postMessage(channel="agents", text="root"))["ts"]
    await tab.click('[data-focus="tool/reply"]')
    await tab.until("document.activeElement.id === 'thread-input'")
    channel = workspace.controls.channel("agents").id
    status = {"channel_id": channel, "thread_ts": root, "status": "is working…"}

    await _api(workspace).assistant_threads_setStatus(**status)
    await tab.until("document.querySelector('#thread-status').textContent === 'the-loop is working…'")
    await _api(workspace).chat_postMessage(channel="agents", thread_ts=root, text="done")

    assert await tab.until("document.querySelector('#thread-status').textContent === ''")


async def test_a_slash_shows_the_commands_and_how_they_go_on(tab: Tab) -> None:
    """A click takes one over; what begins otherwise shows none."""
    await tab.type("#channel-input", "/t")
    shown = await tab.until("document.querySelector('#channel-slash').innerText")
    await tab.click("#channel-slash button")
    taken = await tab.until("document.querySelector('#channel-input').value.length > 2 && document.activeElement.value")
    await tab.evaluate("document.querySelector('#channel-input').value = ''")
    await tab.type("#channel-input", "/x")

    assert "/the-loop" in shown
    assert "say NAME TEXT" in shown
    assert taken == "/the-loop "
    assert await tab.until("document.querySelector('#channel-slash').hidden")


async def test_answers_to_one_person_and_toasts_go_by_themselves(workspace: Workspace, tab: Tab) -> None:
    """The former when the page is loaded again, as in Slack; the latter after a while."""
    await tab.evaluate("window.setTimeout = ((later) => (work, time) => later(work, time / 8))(window.setTimeout)")
    await tab.type("#channel-input", "/the-loop status")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.ephemeral').length === 1")
    parent = workspace.controls.say("alice", "agents", "root")
    await tab.click(f'[data-ts="{parent}"] [data-focus="tool/reply"]')
    await tab.until("document.activeElement.id === 'thread-input'")
    await tab.type("#thread-input", "/clear")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.toast').length === 1")
    await tab.until("document.querySelectorAll('.toast').length === 0")

    await tab.open(workspace.url)
    await _shown(tab, "root")

    assert await tab.evaluate("document.querySelectorAll('.ephemeral').length") == 0


async def test_wide_text_is_held_in_its_column(workspace: Workspace, tab: Tab) -> None:
    """A code block scrolls by itself; the channel beside an open thread never scrolls sideways."""
    wide = f"```\n{'x' * 400}\n```"
    section = {"type": "section", "text": {"type": "mrkdwn", "text": wide}}
    sent = await _api(workspace).chat_postMessage(channel="agents", text="fallback", blocks=[section])
    await _api(workspace).chat_postMessage(channel="agents", text=wide)
    workspace.controls.say("alice", "agents", "an answer", sent["ts"])
    await tab.click(".thread-link")
    await tab.until("document.querySelector('#thread-messages').textContent.includes('an answer')")

    over = "[...document.querySelectorAll('.scroll')].map(pane => pane.scrollWidth - pane.clientWidth)"

    assert await tab.evaluate("document.querySelectorAll('.text pre').length") == 3
    assert await tab.evaluate(over) == [0, 0]


async def test_slash_in_a_thread_is_no_command(workspace: Workspace, tab: Tab) -> None:
    """As in Slack, commands do not run in threads; with a space before it the text is sent as it is."""
    parent = workspace.controls.say("alice", "agents", "root")
    await tab.click('[data-focus="tool/reply"]')
    await tab.until("document.activeElement.id === 'thread-input'")

    await tab.type("#thread-input", "/clear")
    await tab.press("Enter")
    toast = await tab.until("document.querySelector('.toast')?.innerText")
    before = workspace.controls.replies("agents", parent)
    await tab.evaluate("document.querySelector('#thread-input').value = ''")
    await tab.type("#thread-input", " /clear")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('#thread-messages .message').length === 2")

    assert "do not work in threads" in toast
    assert before == []
    assert workspace.controls.replies("agents", parent)[0]["text"] == "/clear"


async def test_person_can_be_changed(workspace: Workspace, tab: Tab) -> None:
    """Speaking as mallory posts as mallory, and everybody sees that she is from outside."""
    await tab.evaluate(_choose(workspace, "mallory"))
    await tab.until("document.querySelector('#channel-input').placeholder.endsWith('as mallory')")

    await tab.type("#channel-input", "let me in")
    await tab.press("Enter")
    await _shown(tab, "let me in")

    assert workspace.controls.messages("agents")[0]["user"] == workspace.controls.user("mallory").id
    assert await tab.evaluate("document.querySelector('.message .badge.outside').textContent") == "Outside"


async def test_refused_message_is_kept_and_the_reason_shown(workspace: Workspace, tab: Tab) -> None:
    """What could not be sent stays in the box, and a message says why."""
    await tab.type("#channel-input", "anybody?")
    workspace.room.store.leave(workspace.controls.channel("agents").id, workspace.controls.user("you").id)

    await tab.press("Enter")
    toast = await tab.until("document.querySelector('.toast')?.innerText")

    refused = [tab.complaints.pop()]
    assert "not a member of #agents" in toast
    assert "409" in refused[0]  # the browser's own note of the refusal
    assert await tab.evaluate("document.querySelector('#channel-input').value") == "anybody?"


async def test_every_control_has_a_name(workspace: Workspace, tab: Tab) -> None:
    """Buttons, boxes and lists have accessible names, as the browser computes them."""
    parent = workspace.controls.say("alice", "agents", "hello")
    workspace.controls.say("bob", "agents", "hi", parent)
    workspace.controls.react("bob", "agents", parent, "eyes")
    await tab.click(".thread-link")
    await tab.until("document.querySelectorAll('#thread-messages .message').length === 2")

    tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]

    roles = ("button", "textbox", "checkbox", "combobox", "list", "log", "link", "main", "navigation", "region")
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]
    assert nameless == []


async def test_reader_far_up_is_not_torn_away(workspace: Workspace, tab: Tab) -> None:
    """New messages do not move somebody who reads older ones; a button leads down."""
    for number in range(60):
        workspace.controls.say("alice", "agents", f"line {number}")
    await tab.until("document.querySelectorAll('#channel-messages .message').length === 60")
    await tab.evaluate("document.querySelector('#channel-scroll').scrollTop = 0")

    workspace.controls.say("bob", "agents", "newest")
    await tab.until("!document.querySelector('#channel-jump').hidden")
    top = await tab.evaluate("document.querySelector('#channel-scroll').scrollTop")
    await tab.click("#channel-jump")

    assert top == 0
    assert await tab.until("document.querySelector('#channel-scroll').scrollTop > 100")


async def test_page_returns_when_the_workspace_does(tmp_path: Path) -> None:
    """While nobody answers a line says so; it goes away with the next answer, and the link still holds."""
    first = Workspace(tmp_path / "workspace.db")
    await first.start()
    async with browser_tab(tmp_path / "profile") as tab:
        await tab.open(first.page_url)
        await tab.until("!document.querySelector('#app').hidden")
        await first.stop()
        await tab.until("!document.querySelector('#offline').hidden")

        second = Workspace(tmp_path / "workspace.db", int(first.url.rpartition(":")[2]))
        await second.start()
        await tab.until("document.querySelector('#offline').hidden")
        second.controls.say("alice", "agents", "we are back")
        await _shown(tab, "we are back")
        await second.stop()


async def _shown(tab: Tab, text: str) -> None:
    await tab.until(f"document.querySelector('#channel-messages').textContent.includes({json.dumps(text)})")


def _choose(workspace: Workspace, name: str) -> str:
    person = json.dumps(workspace.controls.user(name).id)
    return (
        f"(() => {{ const box = document.querySelector('#persona'); box.value = {person};"
        " box.dispatchEvent(new Event('change')); })()"
    )


def _api(workspace: Workspace) -> AsyncWebClient:
    return AsyncWebClient(workspace.room.main_app.bot_token, base_url=workspace.api_url)


FORM: dict[str, Any] = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "Create a session"},
    "submit": {"type": "plain_text", "text": "Create"},
    "blocks": [
        {
            "type": "input",
            "block_id": "name",
            "label": {"type": "plain_text", "text": "Name"},
            "hint": {"type": "plain_text", "text": "1 to 40 of a-z, 0-9 and -"},
            "element": {"type": "plain_text_input", "action_id": "value", "max_length": 40},
        },
        {
            "type": "input",
            "block_id": "people",
            "optional": True,
            "label": {"type": "plain_text", "text": "Who may steer it"},
            "element": {"type": "multi_users_select", "action_id": "value"},
        },
    ],
}


async def test_a_modal_is_filled_in_refused_beside_its_field_and_sent(workspace: Workspace, tab: Tab) -> None:
    """What is typed stays while the app says what is wrong with it; what it takes closes the modal."""
    app, answers = workspace.room.main_app, [{"response_action": "errors", "errors": {"name": "It is taken."}}, None]
    sent: list[Any] = []

    async def heard(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        payload = answers.pop(0) if request.type == "interactive" else None
        sent.extend([request.payload] if request.type == "interactive" else [])
        await client.send_socket_mode_response(SocketModeResponse(request.envelope_id, payload))

    client = SocketModeClient(app_token=app.app_token, web_client=_api(workspace))
    client.socket_mode_request_listeners.append(heard)
    await client.connect()  # type: ignore[no-untyped-call]
    try:
        trigger = workspace.controls.trigger("you")
        await _api(workspace).views_open(trigger_id=trigger, view=FORM)
        await tab.until("document.querySelector('#modal').open")
        await tab.type("#field-name", "scribe")
        await tab.click("#modal-yes")
        assert await tab.until("document.querySelector('#error-name').textContent") == "It is taken."
        assert await tab.evaluate("document.querySelector('#field-name').value") == "scribe"
        await tab.type("#field-name", "-two")
        await tab.click("#modal-yes")
        await tab.until("!document.querySelector('#modal').open")
    finally:
        await client.close()  # type: ignore[no-untyped-call]

    assert [one["view"]["state"]["values"]["name"]["value"]["value"] for one in sent] == ["scribe", "scribe-two"]


async def test_an_app_has_a_home_tab_and_takes_direct_messages(workspace: Workspace, tab: Tab) -> None:
    """The Home tab shows what the app published for this person; a message goes to the bot alone."""
    you, app = workspace.controls.user("you").id, workspace.room.main_app
    await tab.click("#apps button")
    await tab.until("!document.querySelector('#home').hidden")
    await _api(workspace).views_publish(user_id=you, view={"type": "home", "blocks": BLOCKS})
    await tab.until("document.querySelector('#home').textContent.includes('scribe asks')")

    await tab.click("#tab-messages")
    await tab.until("!document.querySelector('#channel-form').hidden")
    await tab.type("#channel-input", "status")
    await tab.press("Enter")

    await _shown(tab, "status")
    place = workspace.controls.direct("you")
    assert [message["text"] for message in workspace.controls.messages(place)] == ["status"]
    told = [
        payload["event"] for payload in workspace.controls.sent_events() if payload["event"].get("channel") == place
    ]
    assert [(event["type"], event.get("tab", "")) for event in told] == [
        ("app_home_opened", "home"),
        ("app_home_opened", "messages"),
        ("message", ""),
    ]
    assert told[-1]["channel_type"] == "im"
    assert app.home_tab


async def test_a_turn_is_seen_as_it_runs(workspace: Workspace, tab: Tab) -> None:
    """A plan whose tasks change, then a text that grows; wide and narrow."""
    root = workspace.controls.say("alice", "agents", "please look after the tests")
    app, alice = workspace.room.main_app, workspace.controls.user("alice")
    client = AsyncWebClient(app.bot_token, base_url=workspace.api_url)
    task = {"type": "task_update", "id": "t", "title": "Bash make test", "status": "in_progress"}
    begun = await client.chat_startStream(
        channel=workspace.controls.channel("agents").id,
        thread_ts=root,
        recipient_user_id=alice.id,
        recipient_team_id=alice.team_id,
        task_display_mode="plan",
        chunks=[{"type": "plan_update", "title": "0 of 1 done"}, task],
    )
    stream = {"channel": begun["channel"], "ts": begun["ts"]}
    shown = "document.querySelector('#thread-messages').innerText"
    await tab.until("document.querySelector('.thread-link') !== null")
    await tab.click(".thread-link")

    await tab.until("document.querySelector('.plan .step.in_progress [aria-label=\"at work\"]') !== null")
    running = await tab.evaluate(shown)
    await client.chat_appendStream(
        **stream, chunks=[{**task, "status": "error"}, {"type": "markdown_text", "text": "It"}]
    )
    await tab.until("document.querySelector('.plan .step.error [aria-label=\"failed\"]') !== null")
    await client.chat_stopStream(**stream, chunks=[{"type": "markdown_text", "text": " **fails**."}])
    await tab.resize(390, 800)
    await tab.until(f"{shown}.includes('It fails.')")
    wide = await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert "0 of 1 done" in running
    assert "is being written" in running
    assert "is being written" not in await tab.evaluate(shown)
    assert wide


async def test_a_message_that_nobody_finished_says_so(workspace: Workspace, tab: Tab) -> None:
    """As Slack shows one whose time is over."""
    root = workspace.controls.say("alice", "agents", "please")
    alice = workspace.controls.user("alice")
    client = AsyncWebClient(workspace.room.main_app.bot_token, base_url=workspace.api_url)
    await client.chat_startStream(
        channel=workspace.controls.channel("agents").id,
        thread_ts=root,
        recipient_user_id=alice.id,
        recipient_team_id=alice.team_id,
        chunks=[{"type": "markdown_text", "text": "half"}],
    )
    await tab.until("document.querySelector('.thread-link') !== null")
    await tab.click(".thread-link")

    workspace.controls.expire_streams()

    await tab.until("document.querySelector('#thread-messages').innerText.includes('Something went wrong')")
