"""What help shows besides each command's own words: the commands by what people do with them, and examples.

`the-loop COMMAND --help` and docs/commands.md show the examples. Each of them is read by the command line's own parser
in a test.
"""

from collections.abc import Mapping

from core.commandtable import CHATS
from core.config.chats import has_setup

#: The group's words -> what people do with its commands -> which they are, in their order.
TASKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "": {
        "Try it, and set it up": ("demo", "config", *CHATS, "fleet", "doctor", "completion"),
        "Everything together": ("start", "stop", "restart", "status", "page", "top", "events"),
        "One session, or one of its loops": ("standing", "loop"),
        "For agents, in their own session": ("post", "ask", "mcp"),
        "By systemd, or in a terminal of its own": ("serve",),
    },
    "standing": {
        "See": ("list", "get", "screen", "logs", "attach", "queue", "history"),
        "Speak": ("say", "cancel", "confirm"),
        "Hold": ("pause", "resume", "interrupt"),
        "Start and end": ("start", "stop", "restart"),
        "Make and remove": ("create", "delete", "announce"),
    },
    "loop": {
        "See and make": ("list", "create"),
        "Change": ("pause", "resume", "run", "schedule", "stop"),
    },
    **{kind: {"Set it up": (*(("setup",) if has_setup(kind) else ()), "check", "manifest")} for kind in CHATS},
    "fleet": {
        "With the admin's URL": ("init", "invite", "evict"),
        "On a host": ("join", "list", "leave"),
    },
    "config": {
        "Write and check": ("init", "check"),
        "Look it up": ("show", "path", "schema"),
    },
}

#: The command's words -> what somebody wants -> what they type.
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "start": {"the service and every session that starts by itself": "the-loop start"},
    "stop": {"everything ends for the night, and comes back with the next start": "the-loop stop"},
    "restart": {"after a change of the configuration": "the-loop restart"},
    "status": {
        "is everything up?": "the-loop status",
        "in a script: the exit code says it": "the-loop status --json",
    },
    "page": {
        "open it in a browser": "the-loop page",
        "a phone or a laptop is lost: log all browsers out": "the-loop page --log-out",
    },
    "doctor": {
        "what is wrong, and what helps?": "the-loop doctor",
        "does a message come back from the chat?": "the-loop doctor --live",
        "nightly: warnings count, too": "the-loop doctor --strict --json",
    },
    "top": {
        "all sessions, kept up to date; q quits": "the-loop top",
        "with the screen of one of them": "the-loop top scribe",
    },
    "completion": {
        "bash, for good": "the-loop completion bash",
        "zsh": "the-loop completion zsh",
        "fish": "the-loop completion fish",
    },
    "standing list": {
        "what runs?": "the-loop standing list",
        "for a script: an array of rows": "the-loop standing list --json",
        "in a fleet: those of all hosts": "the-loop standing list --all",
    },
    "standing get": {"everything about one session": "the-loop standing get scribe"},
    "standing create": {
        "a session with a task": "the-loop standing create scribe --cwd ~/notes --prompt 'Keep the notes tidy.'",
        "its task in a file, and it comes back after a crash": (
            "the-loop standing create builder --prompt-file task.md --restart on-failure"
        ),
    },
    "standing delete": {"stop it and forget it": "the-loop standing delete scribe"},
    "standing say": {
        "a message": "the-loop standing say scribe --text 'How far are you?'",
        "from a pipe": "the-loop standing say scribe -",
        "print the answer": "the-loop standing say scribe --text 'Which tests fail?' --wait-answer",
        "do not wait for it to be taken": "the-loop standing say scribe --text 'Go on.' --no-wait",
    },
    "standing attach": {
        "look over its shoulder": "the-loop standing attach scribe",
        "type into it yourself": "the-loop standing attach scribe --write",
    },
    "standing screen": {
        "what its terminal shows": "the-loop standing screen scribe",
        "the last 200 lines": "the-loop standing screen scribe --lines 200",
    },
    "standing logs": {"why did it end?": "the-loop standing logs scribe"},
    "standing pause": {
        "no further turn; messages wait": "the-loop standing pause scribe --reason lunch",
        "at once, in the middle of a turn": "the-loop standing pause scribe --hard",
    },
    "standing resume": {"go on, with the waiting messages in order": "the-loop standing resume scribe"},
    "standing interrupt": {"as Escape at its terminal": "the-loop standing interrupt scribe"},
    "standing start": {
        "one session, also one that was stopped": "the-loop standing start scribe",
        "every session that nobody holds": "the-loop standing start",
        "with a new conversation": "the-loop standing start scribe --fresh",
    },
    "standing history": {
        "which conversations had it?": "the-loop standing history scribe",
        "which sessions were deleted?": "the-loop standing history",
    },
    "standing stop": {"it stays down until it is started": "the-loop standing stop scribe --reason 'not this week'"},
    "standing restart": {"the same conversation in a new program": "the-loop standing restart scribe"},
    "standing announce": {"its thread is gone: open another": "the-loop standing announce scribe"},
    "standing queue": {
        "what waits, and for what?": "the-loop standing queue scribe",
        "with the texts": "the-loop standing queue scribe --text",
    },
    "standing cancel": {"discard a message that waits": "the-loop standing cancel m-0123456789abcdef"},
    "standing confirm": {"let a late message go in": "the-loop standing confirm m-0123456789abcdef"},
    "loop list": {
        "one session's loops": "the-loop loop list scribe",
        "the open ones of all": "the-loop loop list",
    },
    "loop create": {
        "every weekday at nine": (
            "the-loop loop create scribe --instruction 'Sort the inbox.' --cron '0 9 * * 1-5' --time-zone Europe/Berlin"
        ),
        "every half hour, ten times": (
            "the-loop loop create builder --instruction 'Run the tests.' --interval 30m --max-runs 10"
        ),
    },
    "loop stop": {"for good": "the-loop loop stop l-0123456789abcdef --reason done"},
    "loop pause": {"until it is resumed": "the-loop loop pause l-0123456789abcdef"},
    "loop resume": {"go on; missed runs are not repeated": "the-loop loop resume l-0123456789abcdef"},
    "loop run": {"now, as soon as its session is idle": "the-loop loop run l-0123456789abcdef"},
    "loop schedule": {
        "look again in ten minutes": (
            "the-loop loop schedule l-0123456789abcdef --in 10m --reason 'the build runs until then'"
        ),
    },
    "post": {
        "an agent tells its thread": "the-loop post --text 'The build is done.'",
        "with a file of its folder": "the-loop post --text 'The report.' --file report.pdf",
    },
    "ask": {
        "an agent asks, and waits": "the-loop ask --question 'Deploy now?' --option yes --option no",
    },
    "mcp": {"a harness runs it inside the session": "the-loop mcp"},
    "events": {
        "what happened to one session?": "the-loop events --name scribe --last 20",
        "as it happens, an object a line": "the-loop events --follow --json",
    },
    "config check": {"before a restart": "the-loop config check"},
    "config show": {"every key, with its default": "the-loop config show"},
    "config schema": {"for an editor": "the-loop config schema"},
    "config init": {"a commented file to begin with": "the-loop config init"},
    "config path": {"which file is read, and why?": "the-loop config path"},
    "fleet init": {"once, on any machine that reaches the database": "the-loop fleet init"},
    "fleet invite": {
        "a machine that may speak with the chat for all": "the-loop fleet invite hub --gateway",
        "any other one": "the-loop fleet invite build-3",
    },
    "fleet join": {"on that machine": "the-loop fleet join"},
    "fleet list": {"who is there, and who speaks with the chat?": "the-loop fleet list"},
    "fleet leave": {"on a machine that is retired": "the-loop fleet leave"},
    "fleet evict": {"a laptop was stolen": "the-loop fleet evict lap"},
    "serve": {"in the foreground, as the unit does": "the-loop serve"},
    "demo": {
        "the whole product, without an account": "the-loop demo",
        "a second one beside it": "the-loop demo --name other",
        "your own sessions and harnesses, with the demo's page, state and tmux": "the-loop demo --config FILE",
    },
    **{f"{kind} manifest": {"the app, to paste it there": f"the-loop {kind} manifest"} for kind in CHATS},
    **{
        f"{kind} setup": {"from nothing to a first reply": f"the-loop {kind} setup"}
        for kind in CHATS
        if has_setup(kind)
    },
    **{f"{kind} check": {"tokens, scopes, channel, people": f"the-loop {kind} check"} for kind in CHATS},
}


def examples_of(command: str) -> str:
    """Return the examples as lines for help, a comment above each; "" where there are none."""
    return "\n".join(f"  # {what}\n  {typed}" for what, typed in EXAMPLES.get(command, {}).items())
