#!/bin/sh
# A terminal program that keeps conversations: agent.sh STORE start|resume ID [PROMPT]
# It notes what happens to it in STORE/log, remembers a conversation in STORE/ID, and says READY once it reads.
# STORE/deaf: it never says READY. STORE/broken: it ends at once, also where it was to resume.
# STORE/stubborn: it ignores SIGTERM. STORE/clinging: it ignores SIGHUP.
# STORE/together: holds a number; on SIGTERM it ends only once so many of them were told to end.
store=$1 mode=$2 id=$3 prompt=$4
note() { printf '%s\n' "$*" >>"$store/log"; }
if [ -e "$store/broken" ]; then echo "cannot start: broken"; cat "$store/broken"; exit 3; fi
if [ "$mode" = resume ] && [ ! -e "$store/$id" ]; then echo "No conversation found with session ID: $id"; exit 1; fi
note "$mode $id"
printf '%s' "$prompt" >>"$store/$id"
together() {
  [ -e "$store/together" ] || return
  while [ "$(grep -c ^term "$store/log")" -lt "$(cat "$store/together")" ]; do sleep 0.05; done
  note "ended $id"
}
trap 'note "term $id"; together; exit 143' TERM
[ -e "$store/stubborn" ] && trap '' TERM
trap 'note "hup $id"; exit 129' HUP
[ -e "$store/clinging" ] && trap '' HUP
[ -e "$store/deaf" ] || echo READY
# A test that was killed leaves it without a terminal: it ends a minute later, and costs little until then.
left=240
while [ "$left" -gt 0 ]; do
  read -r line || { left=$((left - 1)); sleep 0.25; continue; }
  note "read $id $line"
done
