"""Words as tmux itself reads them."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.tmux.control import ControlTransport
from core.tmux.transport import Transport, spell
from tests.support.tmux import PrivateTmux, private_tmux, wait_until

_WORDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
    | st.text("\";\\$~#{}'`-% \n\t", min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)


def test_every_word_reaches_tmux_as_it_is() -> None:
    """By arguments, by a control line, and by the inner commands of `if-shell`, a word is neither cut nor read."""
    with private_tmux() as private:
        private.reading(private.runner())
        transports = (private.server.process(), ControlTransport(private.server))
        try:
            _check_words(private, transports)
        finally:
            for transport in transports:
                transport.close()


def _check_words(private: PrivateTmux, transports: tuple[Transport, ...]) -> None:
    saved = private.folder / "saved"

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_WORDS)
    def check(words: list[str]) -> None:
        for transport in transports:
            for word in words:
                line = [("set-buffer", "-b", "x", "--", word), ("save-buffer", "-b", "x", str(saved))]
                for form in (line, [("if-shell", "-F", "1", spell(line))]):
                    saved.unlink(missing_ok=True)
                    assert transport.run(form, 5).rc == 0
                    wait_until(saved.exists, "tmux makes the file")
                    wait_until(saved.read_bytes, "tmux writes the file, after it has answered")
                    assert saved.read_bytes() == word.encode()

    check()
