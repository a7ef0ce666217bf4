#!/bin/sh
# harness_suite.sh [--matrix] VERSION...: run tests/harness with each Claude Code; with --matrix write its page, too.
#
# HARNESS_WORKERS (2) cases run at a time: each waits for its Claude Code more than it computes.
# Ends with 1 where a case has failed, in whichever version; all versions are run, and the page is written, before that.
set -u

python=.venv/bin/python
matrix='' failed=0 files=''
[ "${1:-}" = --matrix ] && { matrix=yes; shift; }
[ "$#" -gt 0 ] || { echo 'usage: harness_suite.sh [--matrix] VERSION...' >&2; exit 2; }

for wanted in "$@"; do
    version=$(sh scripts/claude_code.sh "$wanted") || exit 1
    results=.harness/results/$version.json
    rm -f "$results"
    HARNESS_RESULTS=$results CLAUDE_CODE_VERSION=$version "$python" -m pytest \
        -n "${HARNESS_WORKERS:-2}" --dist worksteal --timeout 300 tests/harness || failed=1
    [ -f "$results" ] || exit 1  # it could not even begin, and has said why
    files="$files $results"
done
if [ -n "$matrix" ]; then
    "$python" -m tests.harness.matrix $files || failed=1
    echo 'docs/harness-matrix.md is written'
fi
exit $failed
