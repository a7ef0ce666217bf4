#!/bin/sh
# Build the Debian package: sh deploy/debian/build.sh ENVIRONMENT FOLDER
#
# ENVIRONMENT is a virtual environment in which the wheel is installed with what it requires, by the system's python3
# (see deploy/README.md). It becomes one in /usr/lib/the-loop;
# the program is in /usr/bin, the units are in /usr/lib/systemd/user.
# Prints the package's path in FOLDER.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
environment=$1 folder=$2
python=$environment/bin/python
[ -x "$python" ] || { echo "build.sh: $python is not there; make the environment first (deploy/README.md)" >&2; exit 2; }
version=$("$python" -c 'from importlib.metadata import version; print(version("the-loop"))')
python_version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("3.%d" % (sys.version_info[1] + 1))')
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
home=$root/usr/lib/the-loop
mkdir -p "$root/DEBIAN" "$home/bin" "$home/lib/python$python_version/site-packages" "$root/usr/bin" \
  "$root/usr/lib/systemd/user" "$root/usr/share/doc/the-loop"
# Links are followed: what an environment borrows belongs into the package.
cp -RL "$packages/." "$home/lib/python$python_version/site-packages/"
find "$home" -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf "$home"/lib/python*/site-packages/pip "$home"/lib/python*/site-packages/pip-*.dist-info
chmod -R u=rwX,go=rX "$home"
# Compiled modules fit one machine; without them the package would be for all.
architecture=all
[ -z "$(find "$home" -name '*.so' -print -quit)" ] || architecture=$(dpkg --print-architecture)

# A virtual environment of the system's python3: the service starts itself and its helpers by its own interpreter.
ln -s /usr/bin/python3 "$home/bin/python"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$home/pyvenv.cfg"
cat >"$home/bin/the-loop" <<'PROGRAM'
#!/usr/lib/the-loop/bin/python
import sys

from core.cli.main import main

sys.exit(main())
PROGRAM
chmod 755 "$home/bin/the-loop"
ln -s ../lib/the-loop/bin/the-loop "$root/usr/bin/the-loop"
for unit in "$here"/../systemd/*.service; do
  sed 's#^ExecStart=%h/.local/bin/#ExecStart=/usr/bin/#' "$unit" >"$root/usr/lib/systemd/user/$(basename "$unit")"
done
cp "$here/../../LICENSE" "$root/usr/share/doc/the-loop/copyright"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@PYTHON@/$python_version/" \
  -e "s/@NEXT@/$next/" "$here/control" >"$root/DEBIAN/control"

package=$folder/the-loop_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
