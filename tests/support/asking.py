"""Permission requests and questions as people see them: posts with buttons, and how they change."""

from embedded.workspace.model import Json
from tests.support.product import Product
from tests.support.tmux import PATIENCE, wait_until


def buttons(message: Json) -> dict[str, str]:
    """Return the action id of each button of a message, by its label."""
    elements = [
        element
        for block in message.get("blocks", [])
        for element in block.get("elements", [])
        if "action_id" in element
    ]
    return {element["text"]["text"]: element["action_id"] for element in elements}


def wait_buttons(product: Product, thread: str, part: str, seconds: float = PATIENCE) -> Json:
    """Return the latest message in the thread that holds the part and has buttons, once there is one."""
    found: list[Json] = []

    def look() -> bool:
        messages = product.workspace.replies("agents", thread)
        found[:] = [message for message in messages if part in message["text"] and buttons(message)]
        return bool(found)

    wait_until(look, f"buttons below {part!r}", seconds)
    return found[-1]


def press(product: Product, who: str, message: Json, label: str) -> None:
    """Press the button of that label, as that person."""
    product.workspace.press(who, "agents", message["ts"], buttons(message)[label])


def press_stale(product: Product, who: str, message: Json, label: str) -> None:
    """Press the button of that label in the message as it was, as a person does whose client has not heard yet."""
    product.workspace.press(who, "agents", message["ts"], buttons(message)[label], shown=message)


def now(product: Product, thread: str, ts: str) -> str:
    """Return what the message says now."""
    [text] = [each["text"] for each in product.workspace.replies("agents", thread) if each["ts"] == ts]
    return str(text)


def wait_text(product: Product, thread: str, ts: str, part: str, seconds: float = PATIENCE) -> str:
    """Return what the message says once it holds the part."""
    try:
        wait_until(lambda: part in now(product, thread, ts), f"{part!r} in {ts}", seconds)
    except AssertionError as error:
        whispers = [each["text"] for each in product.workspace.ephemerals("agents", "alice")]
        raise AssertionError(f"{error}: it says {now(product, thread, ts)!r}; alice was told {whispers}") from error
    return now(product, thread, ts)


def whispered(product: Product, who: str, part: str, seconds: float = PATIENCE) -> str:
    """Return what that person alone was told, once it holds the part."""
    return str(product.workspace.wait_for_ephemeral(who, lambda m: part in m["text"], seconds)["text"])
