#!/bin/sh
# claude_code.sh VERSION: make sure that this Claude Code is in .harness/, in a folder of its own, and print its number.
#
# VERSION is a number (2.1.332), or a tag of its npm package (latest), which is looked up each time.
set -eu

fail() { printf '%s\n' "$*" >&2; exit 1; }

wanted=${1:?usage: claude_code.sh VERSION}
case $wanted in *[!0-9A-Za-z.-]*) fail "$wanted is no version: give a number such as 2.1.332, or latest" ;; esac

package=@anthropic-ai/claude-code
case $wanted in
    [0-9]*) version=$wanted ;;
    *) sh scripts/provide.sh npm >&2
       version=$(npm view "$package@$wanted" version) && [ -n "$version" ] \
           || fail "npm does not tell which version $package@$wanted is: see what it says above, or give a number" ;;
esac

folder=.harness/$version
installed() { [ "$("$1/node_modules/.bin/claude" --version 2>/dev/null)" = "$version (Claude Code)" ]; }

if ! installed "$folder"; then
    sh scripts/provide.sh npm >&2
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    npm install --prefix "$folder.new" --no-audit --no-fund --no-save "$package@$version" >&2
    installed "$folder.new" || fail "$folder.new/node_modules/.bin/claude does not say that it is $version"
    mv "$folder.new" "$folder"
fi
printf '%s\n' "$version"
