# What the reporters of all harnesses have in common. It stands in each of them, behind the first markers.
PATH=/usr/bin:/bin:$PATH
LC_ALL=C
export PATH LC_ALL
umask 077

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

# Whether a text that follows a "[" ($1) goes on as the frame of a message of ours: "alice via cli #k3f9x2] ".
framed() {
  frame=${1%%]*}
  case ${frame##*' #'} in [a-z2-9][a-z2-9][a-z2-9][a-z2-9][a-z2-9][a-z2-9]) ;; *) return 1 ;; esac
  case $frame in *' via '* | 'agent '* | 'the-loop '*) return 0 ;; esac
  return 1
}

# Keeps the payload for later, and blocks the turn that it would begin. $1: stands in the report's name.
block() {
  printf '%s' "$payload" | save "$1.blocked.json"
  poke
  echo "the-loop: this session is held; this is kept for later" >&2
  exit 2
}
