#!/bin/sh
# Hook reporter of the-loop, written for one instance of one session. Usage: report EVENT, the hook's JSON on stdin.
# It must never hold up or break the harness: no lock, no wait, nothing on stdout, exit 0. The one exception is the
# turn gate: exit 2 blocks a turn that nobody typed while the session is held.
folder=@folder@
spool=@spool@
poke=@poke@

# First the markers: whoever is about to send an Enter reads them.
case $1 in
  PermissionRequest) { echo >"$folder/asking"; } 2>/dev/null ;;
  PreToolUse) { echo >"$folder/tool"; } 2>/dev/null ;;
esac
PATH=/usr/bin:/bin:$PATH
LC_ALL=C
export PATH LC_ALL
umask 077
case $1 in
  PreToolUse | PostToolUse | PostToolUseFailure | UserPromptSubmit | Stop | StopFailure | SessionEnd)
    if [ -e "$folder/asking" ]; then rm -f "$folder/asking" 2>/dev/null; fi ;;
esac

event=$1
case $event in '' | *[!A-Za-z]*) event=Other ;; esac
now=$(date +%s%N)
case $now in
  *[!0-9]*) # a date without nanoseconds (macOS)
    now=$(perl -MTime::HiRes=time -e 'printf "%.6f", time' 2>/dev/null | tr -d .)000
    [ "${#now}" -ge 19 ] || now=$(date +%s)000000000 ;;
esac
name=$now-$$-$event

# $1: suffix of the report's name; its content on stdin. It appears under its name only when it is whole.
save() {
  { cat >"$spool/.$name.tmp" && mv "$spool/.$name.tmp" "$spool/$name$1"; } 2>/dev/null || cat >/dev/null
}

# One byte tells the service. Opened for reading and writing, a FIFO waits for nobody; a full one would, so that a
# service that has left a thousand reports unread is not poked again.
poke() {
  [ -p "$poke" ] || return 0
  set -- "$spool"/*.json
  [ "$#" -lt 1000 ] || return 0
  { printf . 1<>"$poke"; } 2>/dev/null
}

if [ "$event" = UserPromptSubmit ] && [ -e "$folder/hold" ]; then
  payload=$(cat)
  # A quote inside a JSON string is escaped, so this can only be the key itself, and the text must begin with the tag.
  case $payload in
    *'"prompt":"<task-notification>'* | *'"prompt": "<task-notification>'*)
      printf '%s' "$payload" | save .blocked.json
      poke
      echo "the-loop: this session is held; the notification is kept for later" >&2
      exit 2 ;;
  esac
  printf '%s' "$payload" | save .json
else
  save .json
fi
poke
exit 0
