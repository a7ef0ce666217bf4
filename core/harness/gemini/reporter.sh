#!/bin/sh
# Hook reporter of the-loop, written for one instance of one session. Usage: report EVENT, the hook's JSON on stdin.
# It must never hold up or break the harness: no lock, no wait, nothing on stdout, exit 0. There is one exception, the
# turn gate: exit 2 blocks a message of ours that waited in the harness's own queue while the session is held.
folder=@folder@
spool=@spool@
poke=@poke@
instance=@instance@

# First the markers. The harness waits for its hooks, so that the dialog is drawn after its marker is there.
case $1 in
  Notification) { echo >"$folder/dialog"; } 2>/dev/null ;;
  BeforeTool) { echo >"$folder/tool"; } 2>/dev/null ;;
esac
PATH=/usr/bin:/bin:$PATH
LC_ALL=C
export PATH LC_ALL
umask 077

event=$1
case $event in '' | *[!A-Za-z]*) event=Other ;; esac
case $event in
  AfterTool | BeforeAgent | AfterAgent | SessionStart | SessionEnd)
    [ ! -e "$folder/dialog" ] || rm -f "$folder/dialog" 2>/dev/null ;;
esac
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

# Whether the payload's prompt begins with a frame of ours, `[alice via cli #k3f9x2] `.
framed() {
  frame=${payload#*'"prompt":"['}
  [ "$frame" != "$payload" ] || return 1
  frame=${frame%%]*}
  case ${frame##*' #'} in [a-z2-9][a-z2-9][a-z2-9][a-z2-9][a-z2-9][a-z2-9]) ;; *) return 1 ;; esac
  case $frame in *' via '* | 'agent '* | 'the-loop '*) return 0 ;; esac
  return 1
}

# Sets record: the conversation's file.
find_record() {
  record=${payload#*'"transcript_path":"'}
  record=${record%%\"*}
}

# Prints the payload with the latest messages of the conversation beside it: what the hook itself tells of the answer
# has each part of it twice, and it does not tell of a failure.
with_records() {
  find_record
  records=$(tail -c 4000000 "$record" 2>/dev/null | grep '^{"id":.*}$' | tail -n 4 | tr '\n' ,)
  printf '{"records":[%s],%s' "${records%,}" "${payload#\{}"
}

# Prints the payload, with a mark where a person has typed the command that ends the harness.
with_leave() {
  find_record
  case $(tail -n 6 "${record%/chats/*}/logs.json" 2>/dev/null) in
    *'"message": "/quit"'* | *'"message": "/exit"'*) printf '{"left":true,%s' "${payload#\{}" ;;
    *) printf '%s' "$payload" ;;
  esac
}

case $event in
  AfterAgent)
    payload=$(cat)
    with_records | save .json ;;
  BeforeAgent)
    payload=$(cat)
    if [ -e "$folder/hold" ] && framed; then
      printf '%s' "$payload" | save .blocked.json
      poke
      echo "the-loop: this session is held; this is kept for later" >&2
      exit 2
    fi
    printf '%s' "$payload" | save .json ;;
  SessionEnd)
    payload=$(cat)
    with_leave | save .json ;;
  *) save .json ;;
esac
poke
exit 0
