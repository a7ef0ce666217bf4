#!/bin/sh
# harness_suite.sh [--matrix] [HARNESSES] [VERSION...]: run tests/harness/HARNESS with each version of its program.
#
# HARNESSES: names with blanks between them, or '' for all. Without a version: the oldest and the newest that were tried;
# with --matrix all of them, and docs/harness-matrix.md is written from what has been kept of all runs.
# HARNESS_WORKERS (2) cases run at a time: each waits for its program more than it computes.
# Ends with 1 where a case has failed, in whichever version; all versions are run, and the page is written, before that.
set -u

python=.venv/bin/python
matrix='' which=ends failed=0
[ "${1:-}" = --matrix ] && { matrix=yes which=all; shift; }
harnesses=${1:-}
[ "$#" -eq 0 ] || shift
[ -n "$harnesses" ] || harnesses=$("$python" -m tests.harness.program) || exit 1

for harness in $harnesses; do
    told=$("$python" -m tests.harness.program "$harness" "$which") || exit 1
    read -r package command tried <<END
$told
END
    for wanted in ${*:-${tried:-latest}}; do
        version=$(sh scripts/harness_program.sh "$harness" "$package" "$command" "$wanted") || exit 1
        results=.harness/results/$harness-$version.json
        rm -f "$results"
        HARNESS_RESULTS=.harness/results HARNESS_VERSION=$version "$python" -m pytest \
            -n "${HARNESS_WORKERS:-2}" --dist worksteal --timeout 300 "tests/harness/$harness" || failed=1
        [ -f "$results" ] || exit 1  # it could not even begin, and has said why
        [ -z "$matrix" ] || cp "$results" tests/harness/results/
    done
done
if [ -n "$matrix" ]; then
    "$python" -m tests.harness.matrix || failed=1
    echo 'docs/harness-matrix.md is written'
fi
exit $failed
