#!/bin/sh
# provide.sh PROGRAM: make sure that a program from outside Python is there.
#
# Installs it through the machine's package manager where we may (root, or sudo without a password);
# elsewhere prints the exact command to type and exits 1.
# PROGRAM: tmux | chromium | npm | venv | postgresql (the server's programs) | libpq (its library for clients).
set -u

fail() { printf '%s\n' "$*" >&2; exit 1; }

# tmux 3.2 is the first with the format comparisons and pane options that the runner relies on.
# "tmux 3.3a", "tmux next-3.6"; "tmux master" and OpenBSD's own numbering count as new.
tmux_is_new_enough() {
    version=$(tmux -V 2>/dev/null | sed -n 's/^tmux \(next-\)\{0,1\}\([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\2 \3/p')
    [ -n "$version" ] || return 0
    set -- $version
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 2 ]; }
}

# PostgreSQL 15 is the first whose row-level security and rights the fleet's schema is tried with. Debian keeps the
# server's programs out of PATH.
postgresql_is_new_enough() {
    for initdb in "$(command -v initdb)" /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$initdb" ] || continue
        major=$("$initdb" --version | sed -n 's/^initdb (PostgreSQL) \([0-9][0-9]*\).*/\1/p')
        [ -n "$major" ] && [ "$major" -ge 15 ] && return 0
    done
    return 1
}

present() {
    case $1 in
        tmux) command -v tmux >/dev/null 2>&1 && tmux_is_new_enough ;;
        chromium) command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 \
            || command -v google-chrome >/dev/null 2>&1 ;;
        npm) command -v npm >/dev/null 2>&1 ;;
        venv) "${PYTHON:-python3}" -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
        postgresql) postgresql_is_new_enough ;;
        libpq) "${PYTHON:-python3}" -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("pq"))' ;;
        *) fail "provide.sh: no such program is known here: $1" ;;
    esac
}

# The command that installs $1, without sudo; empty where no package manager is known.
recipe() {
    package=$1
    if command -v apt-get >/dev/null 2>&1; then
        case $1 in venv) package=python3-venv ;; libpq) package=libpq5 ;; esac
        printf 'apt-get update && apt-get install -y --no-install-recommends %s' "$package"
    elif command -v dnf >/dev/null 2>&1; then
        case $1 in venv) package=python3 ;; postgresql) package=postgresql-server ;; esac
        printf 'dnf install -y %s' "$package"
    elif command -v pacman >/dev/null 2>&1; then
        case $1 in venv) package=python ;; libpq) package=postgresql-libs ;; esac
        printf 'pacman -S --noconfirm --needed %s' "$package"
    elif command -v apk >/dev/null 2>&1; then
        case $1 in venv) package=python3 ;; postgresql) package=postgresql-server ;; esac
        printf 'apk add %s' "$package"
    elif command -v brew >/dev/null 2>&1; then
        case $1 in
            npm) package=node ;;
            venv) package=python ;;
            chromium) package='--cask chromium' ;;
            postgresql) package=postgresql@17 ;;
        esac
        printf 'brew install %s' "$package"
    fi
}

program=${1:?usage: provide.sh tmux|chromium|npm|venv|postgresql|libpq}
present "$program" && exit 0

what=$program
[ "$program" = tmux ] && what='tmux 3.2 or newer'
[ "$program" = postgresql ] && what='PostgreSQL 15 or newer'
[ "$program" = libpq ] && what="PostgreSQL's library libpq"
[ "$program" = venv ] && what="the venv module of ${PYTHON:-python3}"
line=$(recipe "$program")
[ -n "$line" ] || fail "$what is missing and no package manager is known here: install it, then run make again"

case $line in
    brew*) as='' ;;
    *) if [ "$(id -u)" -eq 0 ]; then as=''; else as=sudo; fi ;;
esac
[ -z "$as" ] && typed="sh -c '$line'" || typed="sudo sh -c '$line'"

if [ -n "$as" ] && ! sudo -n true >/dev/null 2>&1; then
    fail "$what is missing and may not be installed without your password. Type:
    $typed
then run make again."
fi

printf '%s is missing: %s\n' "$what" "$typed"
${as:+sudo -n} env DEBIAN_FRONTEND=noninteractive sh -c "$line" </dev/null \
    || fail "$what could not be installed. Type, and read what it says:
    $typed
then run make again."
present "$program" || fail "$what is still missing or too old after its installation; the package manager has no newer one.
Install it from elsewhere, put it on PATH, then run make again."
