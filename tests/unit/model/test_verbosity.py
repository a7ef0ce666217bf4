"""How much a thread is told."""

from core.model.posts import OutboundKind, ProgressRow, Verbosity, progress_text, shows, step_line

K = OutboundKind


def _shown(verbosity: Verbosity) -> set[OutboundKind]:
    return {kind for kind in OutboundKind if shows(verbosity, kind)}


def test_each_level_shows_more_than_the_one_before() -> None:
    """Strict supersets, and the last shows everything."""
    quiet, normal, verbose = map(_shown, Verbosity)

    assert quiet < normal < verbose == set(OutboundKind)
    assert normal - quiet == {K.ASKED, K.ANSWER, K.PART, K.FILE}
    assert verbose - normal == {K.PROGRESS}


def test_steps_are_a_line_each() -> None:
    """One line a tool, its detail as code, the earlier ones counted."""
    lines = (step_line("Bash", "ls\n -l `x`"), step_line("Read", ""))

    assert lines == ("- Bash `ls -l 'x'`", "- Read")
    assert progress_text(ProgressRow("s-1", "t", lines, steps=2)) == "**Steps of this turn: 2**\n" + "\n".join(lines)
    assert "the last 2 are shown" in progress_text(ProgressRow("s-1", "t", lines, steps=9))
    assert len(step_line("Bash", "x" * 500)) < 120
