#!/bin/sh
# Run the service. The container's end would kill the agents, so they are ended first, gently; the next start resumes them.
the-loop serve &
service=$!
told=
trap 'the-loop stop; told=1' TERM INT
code=0
wait "$service" || code=$?
while [ -n "$told" ]; do # the signal ended the wait, and the service's end has a code of its own
  told= code=0
  wait "$service" || code=$?
done
exit "$code"
