#!/bin/sh
# Debian and its like have what makes virtual environments apart from python3.
if [ "$SANDSHELL_ROOT" = yes ] && [ "$SANDSHELL_PACKAGE_MANAGER" = apt-get ]; then
  apt-get update && apt-get install -y --no-install-recommends python3-venv
  "$SANDSHELL_PYTOOL_PYTHON" -c 'import ensurepip' && exit
fi
echo "$SANDSHELL_PYTOOL_PYTHON has neither ensurepip nor pip, which requirements need: install python3-venv there"
exit 1
