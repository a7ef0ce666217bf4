"""What is claimed of a session is so, whatever its program does: one behaviour at a time."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.lifecycle.look import get_standing
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.claude import BEHAVIOURS
from tests.support.claims import (
    Case,
    ClaimedProduct,
    answers_to,
    false_claims,
    interrupt_with_a_queue,
    pause_with_a_queue,
    reply_and_interrupt,
    reply_one_after_the_other,
    restart_with_a_queue,
    say_at_a_dialog,
    say_in_a_turn_of_its_queue,
    say_in_mid_turn,
    say_when_idle,
    untold,
)

#: drive -> the behaviours after which a message need not arrive, but then nobody may say that it did
UNRECORDED = ("transcript renamed", "transcript gone", "transcript of another form")  #: nothing tells of a turn's texts
DRIVES: Mapping[Callable[[Case], None], tuple[str, ...]] = {
    say_when_idle: UNRECORDED,
    say_in_mid_turn: UNRECORDED,
    say_in_a_turn_of_its_queue: UNRECORDED,
    restart_with_a_queue: (
        "boot hook never",  # it is waited for, longer than the drive takes
        "hooks never",
        *UNRECORDED,
    ),
    pause_with_a_queue: ("queue dropped at an escape", *UNRECORDED),  # what was on its way as it was paused is gone
    interrupt_with_a_queue: ("queue dropped at an escape", *UNRECORDED),  # and then the text is gone
    say_at_a_dialog: tuple(BEHAVIOURS),  # nobody answers it
}
QUICK = (say_in_mid_turn, say_in_a_turn_of_its_queue, restart_with_a_queue, pause_with_a_queue)
#: what these are tried with at once; all drives are, with all behaviours, where there is time
SOME = (
    "usual",
    "newest",
    "start hook early and queued late",
    "start hook never",
    "stop hook never",
    "hooks never",
    "queue dropped at an escape",
)
UNHEARD = ("usual", "boot hook never", "start hook never", "stop hook never", "start hook twice", "hooks never")


@contextmanager
def claimed(behaviours: Sequence[str], workspace: WorkspaceThread | None = None) -> Iterator[ClaimedProduct]:
    """Give a product that runs, with a session a behaviour."""
    folder = Path(tempfile.mkdtemp(prefix="lb-"))
    product = ClaimedProduct(folder, behaviours, workspace)
    try:
        product.serve().wait_swept()
        yield product
    finally:
        product.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("drive", QUICK, ids=lambda drive: drive.__name__)
def test_no_claim_is_false_of_the_usual_programs(drive: Callable[[Case], None]) -> None:
    """Of answers, rows and events; nothing is doubled or lost unsaid; what can arrive does."""
    judge(drive, SOME)


@pytest.mark.long
@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.__name__)
def test_no_claim_is_false(drive: Callable[[Case], None]) -> None:
    """The same of every program, and no dialog is answered."""
    judge(drive, tuple(BEHAVIOURS))


def judge(drive: Callable[[Case], None], behaviours: Sequence[str]) -> None:
    """Drive a session a behaviour, all at the same time, and judge what was claimed and what arrived."""
    with claimed(behaviours) as product:
        cases = product.drive(drive, needless=DRIVES[drive])

        events = product.events()
        found = {case.behaviour: false_claims(case, events) for case in cases}
        missing = {case.behaviour: untold(case) for case in cases if case.behaviour not in DRIVES[drive]}
        stories = [case.story() for case in cases if found[case.behaviour] or missing.get(case.behaviour)]
    assert {behaviour: claims for behaviour, claims in found.items() if claims} == {}, "\n\n".join(stories)
    assert {behaviour: texts for behaviour, texts in missing.items() if texts} == {}, "\n\n".join(stories)


@pytest.mark.long
def test_no_thread_claims_what_is_not_so() -> None:
    """A reply that an interruption has dropped is never ticked off, one that a turn took is taken once."""
    with (
        WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
        claimed(tuple(BEHAVIOURS), workspace) as product,
    ):
        cases = product.drive(reply_and_interrupt)

        events = product.events()
        found = {case.behaviour: false_claims(case, events) for case in cases}
    assert {behaviour: claims for behaviour, claims in found.items() if claims} == {}


@pytest.mark.long
def test_each_reply_is_answered_once_whatever_its_hooks_leave_out() -> None:
    """The record tells what they do not, and whoever is late says nothing twice; a row says whose hooks are silent."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, claimed(UNHEARD, workspace) as product:
        cases = product.drive(reply_one_after_the_other)

        rows = {case.behaviour: get_standing(case.system, case.name).hooks for case in cases}
        events = product.events()
        found = {case.behaviour: false_claims(case, events) for case in cases}
        answers = {case.behaviour: len(answers_to(case, "reply")) for case in cases}
    assert {behaviour: claims for behaviour, claims in found.items() if claims} == {}
    assert answers == dict.fromkeys(UNHEARD, 2)
    silent = ("stop hook never", "hooks never")
    assert rows == {behaviour: "silent" if behaviour in silent else "reporting" for behaviour in UNHEARD}
