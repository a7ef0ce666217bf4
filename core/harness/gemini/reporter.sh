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
@frame@

case $event in
  AfterTool | BeforeAgent | AfterAgent | SessionStart | SessionEnd)
    [ ! -e "$folder/dialog" ] || rm -f "$folder/dialog" 2>/dev/null ;;
esac

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
    case $payload in
      *'"prompt":"['*) if [ -e "$folder/hold" ] && framed "${payload#*'"prompt":"['}"; then block ''; fi ;;
    esac
    printf '%s' "$payload" | save .json ;;
  SessionEnd)
    payload=$(cat)
    with_leave | save .json ;;
  *) save .json ;;
esac
poke
exit 0
