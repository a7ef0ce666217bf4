"""Which versions of Claude Code were tried. docs/harness-matrix.md says with what result."""

#: Oldest first: the oldest that is supported, and the newest that is known. `make harness-matrix` runs the suite of
#: tests/harness over them.
TRIED = ("2.1.197", "2.1.280", "2.1.332")
