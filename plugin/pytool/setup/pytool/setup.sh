#!/bin/sh
# Finds python3, or installs it if that is allowed, and sets variables that say where it is.
python() {
  for p in python3 python /usr/bin/python3; do
    "$p" -c 'import sys
if sys.version_info < (3, 8): sys.exit(1)
print("%s\n%d.%d.%d" % ((sys.executable,) + sys.version_info[:3]))' 2>/dev/null && return
  done
}

found=$(python)
if [ -z "$found" ]; then
  if [ "$SANDSHELL_ROOT" != yes ]; then
    echo "there is no python3 (3.8 or newer) in PATH, and no right to install it:" \
      "install python3 there"
    exit 1
  fi
  case $SANDSHELL_PACKAGE_MANAGER in
  apt-get) apt-get update && apt-get install -y --no-install-recommends python3 ;;
  apk) apk add --no-cache python3 ;;
  dnf | yum) "$SANDSHELL_PACKAGE_MANAGER" install -y python3 ;;
  zypper) zypper --non-interactive install python3 ;;
  pacman) pacman -Sy --noconfirm python ;;
  *) false ;;
  esac
  found=$(python)
  if [ -z "$found" ]; then
    echo "there is no python3 (3.8 or newer) in PATH," \
      "and ${SANDSHELL_PACKAGE_MANAGER:-no package manager} could not install it:" \
      "use an image that has it"
    exit 1
  fi
fi

executable=${found%
*}
version=${found##*
}
"$executable" -m py_compile sandshell_tool.py || exit # calls use -B and compile nothing
cat >>"$SANDSHELL_ENV" <<END
SANDSHELL_PYTOOL=$SANDSHELL_PLUGIN
SANDSHELL_PYTOOL_PYTHON=$executable
SANDSHELL_PYTOOL_VERSION=$version
END
