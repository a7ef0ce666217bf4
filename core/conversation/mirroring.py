"""Copies of replies kept elsewhere. A standing session has no ticket, so there is nothing to copy to yet."""


class NullMirror:
    """The Mirror of a product without a ticket system."""

    def copy(self, ref: str, text: str) -> bool:
        """Copy nothing: no ref has a ticket."""
        return False
