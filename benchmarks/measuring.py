"""Two programs measured by turns, and the ratio of their medians."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Measure = Callable[[], float]  #: does it once, and returns what it cost

_EXIT_MISSED = 1


class Ratio(NamedTuple):
    """What was compared with what, every value measured, and how many times the floor it may cost.

    `percentile`: of both, in place of the median.
    """

    ours: str
    floor: str
    unit: str
    ours_values: tuple[float, ...]
    floor_values: tuple[float, ...]
    bound: float
    percentile: int = 50

    @property
    def value(self) -> float:
        """Return the ratio of the medians, or of the percentiles."""
        return self._at(self.ours_values) / self._at(self.floor_values)

    @property
    def kept(self) -> bool:
        """Return whether the bound is kept."""
        return self.value <= self.bound

    def __str__(self) -> str:
        ours, floor = self._at(self.ours_values), self._at(self.floor_values)
        what = "medians" if self.percentile == 50 else f"p{self.percentile}"
        verdict = "kept" if self.kept else "MISSED"
        return (
            f"{self.value:5.2f}  (bound {self.bound:g}, {verdict})  {self.ours} / {self.floor}: "
            f"{ours:.1f} {self.unit} / {floor:.1f} {self.unit}, {what} of {len(self.ours_values)}"
        )

    def _at(self, values: Sequence[float]) -> float:
        if self.percentile == 50:
            return statistics.median(values)
        return statistics.quantiles(values, n=100, method="inclusive")[self.percentile - 1]


def compare(
    ours: tuple[str, Measure], floor: tuple[str, Measure], *, bound: float, runs: int, unit: str = "ms"
) -> Ratio:
    """Measure both by turns after a warm-up of each; who goes first alternates, so that a drift meets both alike."""
    values: tuple[list[float], list[float]] = ([], [])
    measures = (ours[1], floor[1])
    for measure in measures:
        measure()
    for run in range(runs):
        for which in (0, 1) if run % 2 == 0 else (1, 0):
            values[which].append(measures[which]())
    return Ratio(ours[0], floor[0], unit, tuple(values[0]), tuple(values[1]), bound)


def process_time(command: Sequence[str], environ: Mapping[str, str]) -> Measure:
    """Return a measure of one process from start to end, in milliseconds. Raises CalledProcessError if it fails."""

    def measure() -> float:
        begun = time.perf_counter()
        subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
        return 1000 * (time.perf_counter() - begun)

    return measure


def call_time(call: Callable[[], object]) -> Measure:
    """Return a measure of one call in this process, in milliseconds."""

    def measure() -> float:
        begun = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - begun)

    return measure


def report(ratios: Sequence[Ratio]) -> int:
    """Print each ratio, and return the exit code: 1 if a bound is missed."""
    for ratio in ratios:
        print(ratio, flush=True)
    return 0 if all(ratio.kept for ratio in ratios) else _EXIT_MISSED
