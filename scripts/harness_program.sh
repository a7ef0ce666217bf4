#!/bin/sh
# harness_program.sh HARNESS PACKAGE COMMAND VERSION: make sure that this version of a harness is in .harness/, in a
# folder of its own, and print its number.
#
# PACKAGE is its npm package and COMMAND what it installs. VERSION is a number (2.1.332), or a tag of the package
# (latest), which is looked up each time.
set -eu

fail() { printf '%s\n' "$*" >&2; exit 1; }

[ "$#" -eq 4 ] || fail 'usage: harness_program.sh HARNESS PACKAGE COMMAND VERSION'
harness=$1 package=$2 command=$3 wanted=$4
case $wanted in ''|*[!0-9A-Za-z.-]*) fail "$wanted is no version: give a number such as 2.1.332, or latest" ;; esac

case $wanted in
    [0-9]*) version=$wanted ;;
    *) sh scripts/provide.sh npm >&2
       version=$(npm view "$package@$wanted" version) && [ -n "$version" ] \
           || fail "npm does not tell which version $package@$wanted is: see what it says above, or give a number" ;;
esac

folder=.harness/$harness/$version
installed() {
    said=$("$1/node_modules/.bin/$command" --version 2>/dev/null) || return 1
    case " $said " in *" $version "*) ;; *) return 1 ;; esac
}

if ! installed "$folder"; then
    sh scripts/provide.sh npm >&2
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    npm install --prefix "$folder.new" --no-audit --no-fund --no-save "$package@$version" >&2
    installed "$folder.new" || fail "$folder.new/node_modules/.bin/$command does not say that it is $version"
    mv "$folder.new" "$folder"
fi
printf '%s\n' "$version"
