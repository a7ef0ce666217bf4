#!/bin/sh
# Hook reporter of the-loop, written for one instance of one session. Usage: report EVENT, the hook's JSON on stdin.
# It must never hold up or break the harness: no lock, no wait, nothing on stdout, exit 0. There are two exceptions. The
# turn gate: exit 2 blocks a turn that nobody typed while the session is held. And at a PermissionRequest it becomes, in
# the end, the client that waits for a person's answer in a chat, if a service is there to ask.
folder=@folder@
spool=@spool@
poke=@poke@
instance=@instance@
service=@service@
python=@python@

# First the markers: whoever is about to send an Enter reads them.
asking=$folder/asking
case $1 in
  PermissionRequest) { echo >>"$asking"; } 2>/dev/null ;;
  PreToolUse) { echo >"$folder/tool"; } 2>/dev/null ;;
esac
@frame@

if [ "$1" = Scheduled ]; then # no report: the tool's call is one
  { cat >>"$folder/scheduling"; } 2>/dev/null
  exit 0
fi

# Sets agent: whose event this is. A subagent's payload names it before the event's name; tools run in parallel then,
# and its tool ending says nothing about the dialog of another.
whose() {
  head=${payload%%'"hook_event_name"'*}
  agent=main
  case $head in *'"agent_id":"'*) agent=${head##*'"agent_id":"'} agent=${agent%%\"*} ;; esac
  case $agent in '' | *[!A-Za-z0-9_-]*) agent=other ;; esac
}

# Sets open: the agents that wait for a person, by the lines "+agent" (asked) and "-agent" (went on) of the file $1.
waiting() {
  open=
  while read -r line; do
    case $line in
      +*) open="$open ${line#+}" ;;
      -*)
        left=
        for each in $open; do [ "$each" = "${line#-}" ] || left="$left $each"; done
        open=$left ;;
    esac
  done <"$1"
  [ -n "$open" ]
}

# The agent's dialog, if it had one, is over. The marker goes with the last of them; whoever asks meanwhile is kept.
went_on() {
  echo "-$agent" >>"$asking"
  if [ "$event" = Stop ] && waiting "$asking"; then
    for each in $open; do # what runs in no background any more waits for nobody
      case $payload in *"\"id\":\"$each\""*) ;; *) echo "-$each" >>"$asking" ;; esac
    done
  fi
  waiting "$asking" && return
  mv "$asking" "$asking.$$" || return
  if waiting "$asking.$$"; then cat "$asking.$$" >>"$asking"; fi
  rm -f "$asking.$$"
}

follow() {
  whose
  case $event in
    PermissionRequest)
      echo "+$agent" >>"$asking"
      [ -e "$asking" ] || echo "+$agent" >>"$asking" ;;
    SessionEnd) rm -f "$asking" ;;
    PreToolUse | PostToolUse | PostToolUseFailure | UserPromptSubmit | Stop | StopFailure | SubagentStop | Interrupt) went_on ;;
  esac
}

# Whether nobody typed the payload's prompt: the harness tells itself that a task is over, or takes a message of ours
# that waited in its own queue, by its frame "[alice via cli #k3f9x2] ". A quote inside a JSON string is escaped, so that what is
# looked for can only be the key itself, and the text must begin with the tag or the frame.
born_here() {
  case $payload in
    *'"prompt":"<task-notification>'* | *'"prompt": "<task-notification>'*) return 0 ;;
    *'"prompt":"['*) framed "${payload#*'"prompt":"['}" ;;
    *'"prompt": "['*) framed "${payload#*'"prompt": "['}" ;;
    *) return 1 ;;
  esac
}

# What the harness has scheduled for itself: each end of a turn lists it, with the prompts, and until then the calls of
# the tools tell.
note_schedule() {
  case $payload in
    *'"session_crons":[{'* | *'"session_crons": [{'*) printf '%s' "${payload##*'"session_crons":'}" >"$folder/schedule" ;;
    *) [ ! -e "$folder/schedule" ] || rm -f "$folder/schedule" ;;
  esac
  [ ! -e "$folder/scheduling" ] || rm -f "$folder/scheduling"
}

# Whether the payload's prompt is one of those: the same JSON string, quotes included.
scheduled() {
  [ -e "$folder/schedule" ] || [ -e "$folder/scheduling" ] || return 1
  prompt=$(printf '%s' "$payload" | sed -n -E 's/.*"prompt": ?("([^"\\]|\\.)*").*/\1/p')
  [ -n "$prompt" ] || return 1
  case $(cat "$folder/schedule" "$folder/scheduling" 2>/dev/null) in
    *'"prompt":'"$prompt"* | *'"prompt": '"$prompt"*) return 0 ;;
  esac
  return 1
}

look=
[ ! -e "$asking" ] || look=1
case $event in
  PermissionRequest | Stop) look=1 ;; # what ends meanwhile may have taken the marker away again
  UserPromptSubmit)
    for each in hold schedule scheduling; do [ ! -e "$folder/$each" ] || look=1; done ;;
esac
if [ -n "$look" ]; then
  payload=$(cat)
  if [ "$event" = PermissionRequest ] || [ -e "$asking" ]; then follow 2>/dev/null; fi
  if [ "$event" = Stop ]; then note_schedule 2>/dev/null; fi
  own=
  if [ "$event" = UserPromptSubmit ] && scheduled; then own=.scheduled; fi
  if [ "$event" = UserPromptSubmit ] && [ -e "$folder/hold" ] && { [ -n "$own" ] || born_here; }; then
    block "$own"
  fi
  printf '%s' "$payload" | save "$own.json"
  if [ "$event" = PermissionRequest ] && [ -S "$service" ] && [ -x "$python" ] && [ -r "$folder/ask.py" ]; then
    poke
    exec "$python" -I -S "$folder/ask.py" "$service" "$instance" "$name" 2>/dev/null <<END
$payload
END
  fi
else
  save .json
fi
poke
exit 0
