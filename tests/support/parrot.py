"""A harness as a package of its own would bring it: a program that repeats what it is told."""

from collections.abc import Mapping

from core.harness.generic import GenericHarness

PARROT = "parrot = tests.support.parrot:parrot\n"  #: its line in the group `the_loop.harnesses`


def parrot(environ: Mapping[str, str]) -> GenericHarness:
    """Make the harness."""
    return GenericHarness("parrot", ("cat",), path=environ.get("PATH"))
