"""The commands that scripts call often, without the cost of the whole command line."""


def answer(arguments: list[str]) -> int | None:
    """Answer the command if it is one of the quick ones, and return its exit code; None for every other."""
    return None
