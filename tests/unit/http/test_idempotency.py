"""A request that is sent twice under one key."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import Response

from core.base.errors import InvalidValue
from core.base.paths import StatePaths
from core.http.answers import refusal, told
from core.http.idempotency import Keys, digest_of, key_of_headers
from core.store.answered import KEPT, AnswerBook
from core.store.database import Database
from tests.support.tmux import PATIENCE
from tests.unit.store.samples import StandingClock


@pytest.fixture
def clock() -> StandingClock:
    """Return a clock that stands still."""
    return StandingClock()


@pytest.fixture
def book(tmp_path: Path, clock: StandingClock) -> Iterator[AnswerBook]:
    """Return a book in a database of its own."""
    database = Database(StatePaths(tmp_path), clock)
    yield AnswerBook(database)
    database.close()


@pytest.fixture
def keys(book: AnswerBook, clock: StandingClock) -> Keys:
    """Return the keys of a service."""
    return Keys(book, clock)


class Work:
    """What is done; counts how often."""

    def __init__(self, answer: Response | None = None) -> None:
        self.times = 0
        self._answer = answer

    def __call__(self) -> Response:
        self.times += 1
        return self._answer or told({"times": self.times})


def test_it_is_done_once_and_answered_the_same(keys: Keys, book: AnswerBook, clock: StandingClock) -> None:
    """By the next service, too; an error is an answer as well."""
    work, fails = Work(), Work(refusal(409, "refused", "no", "no"))

    first, second = keys.once("ann", "k", "d", work), keys.once("ann", "k", "d", work)
    later = Keys(book, clock).once("ann", "k", "d", work)
    failed = [keys.once("ann", "other", "d", fails) for _ in range(2)]

    assert work.times == fails.times == 1
    assert bytes(first.body) == bytes(second.body) == bytes(later.body)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == later.headers["idempotency-replayed"] == "true"
    assert [answer.status_code for answer in failed] == [409, 409]


def test_another_request_under_the_key_is_refused(keys: Keys) -> None:
    """And not done. Another person's key is another."""
    work = Work()
    keys.once("ann", "k", "d", work)

    other = keys.once("ann", "k", "e", work)
    theirs = keys.once("bob", "k", "e", work)

    assert (other.status_code, b"key_reused" in other.body) == (422, True)
    assert theirs.status_code == 200
    assert work.times == 2


def test_one_that_comes_while_the_first_is_done_is_told_to_wait(keys: Keys) -> None:
    """It is not done beside it."""
    began, go, answers = threading.Event(), threading.Event(), list[Response]()

    def slow() -> Response:
        began.set()
        go.wait(PATIENCE)
        return told({})

    thread = threading.Thread(target=lambda: answers.append(keys.once("ann", "k", "d", slow)))
    thread.start()
    began.wait(PATIENCE)
    second = keys.once("ann", "k", "d", Work())
    go.set()
    thread.join(PATIENCE)

    assert (second.status_code, b"under_way" in second.body) == (409, True)
    assert int(second.headers["retry-after"]) > 0
    assert answers[0].status_code == 200


def test_what_a_service_began_and_did_not_answer_is_never_done_again(keys: Keys, book: AnswerBook) -> None:
    """Nobody knows whether it was done."""
    work = Work()
    book.begin("ann", "k", "d", StandingClock().now())

    answer = keys.once("ann", "k", "d", work)

    assert (answer.status_code, b"outcome_unknown" in answer.body) == (409, True)
    assert work.times == 0


def test_work_that_breaks_leaves_the_outcome_unknown(keys: Keys) -> None:
    """A defect may have done half of it."""

    def breaks() -> Response:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        keys.once("ann", "k", "d", breaks)

    assert b"outcome_unknown" in keys.once("ann", "k", "d", Work()).body


def test_what_could_not_be_done_now_may_come_again(keys: Keys) -> None:
    """An answer with Retry-After says that nothing was done."""
    busy, work = Work(refusal(503, "lock_busy", "busy", "later", {"Retry-After": "2"})), Work()

    answers = [keys.once("ann", "k", "d", does).status_code for does in (busy, busy, work, work)]

    assert answers == [503, 503, 200, 200]
    assert (busy.times, work.times) == (2, 1)


def test_a_key_is_forgotten_after_a_day(keys: Keys, clock: StandingClock) -> None:
    """Then it is another request's."""
    work = Work()
    keys.once("ann", "k", "d", work)
    clock.moment += KEPT
    keys.once("ann", "k", "d", work)
    clock.moment += clock.moment.resolution

    keys.once("ann", "k", "e", work)

    assert work.times == 2


@pytest.mark.parametrize("values", [[""], ["  "], ["a", "b"], ["ä"], ["a\tb"], ["x" * 256]])
def test_what_is_no_key_is_named(values: list[str]) -> None:
    """Rather than taken for none."""
    with pytest.raises(InvalidValue, match="Idempotency-Key"):
        key_of_headers(values)


def test_a_key_is_optional() -> None:
    """Spaces around it do not count."""
    assert key_of_headers([]) is None
    assert key_of_headers([" 8e03978e-40d5-43dd-bc93-6894a57f9324 "]) == "8e03978e-40d5-43dd-bc93-6894a57f9324"


def test_requests_differ_by_path_and_body() -> None:
    """Neither end of the one is the beginning of the other."""
    assert len({digest_of("/a", b"b"), digest_of("/ab", b""), digest_of("/a", b"c"), digest_of("/c", b"b")}) == 4
