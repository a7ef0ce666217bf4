#!/bin/sh
# link.sh PROGRAM FOLDER: put a link to PROGRAM (an absolute path) into FOLDER, where a shell or a unit finds it.
#
# A link that is there already is made anew; a file of that name that is no link is somebody's, and is left alone.
set -eu

program=$1 folder=$2
link=$folder/$(basename "$program")

if [ ! -x "$program" ]; then
    echo "$program is no program: run \`make setup\` first" >&2
    exit 1
fi
if [ -e "$link" ] && [ ! -L "$link" ]; then
    echo "$link is there and is no link: move it away, then try again" >&2
    exit 1
fi
mkdir -p "$folder"
ln -sfn "$program" "$link"
echo "$link -> $program"
case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "your shell does not look there yet: export PATH=\"$folder:\$PATH\"" ;;
esac
