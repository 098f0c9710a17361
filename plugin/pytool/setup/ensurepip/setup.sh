#!/bin/sh
# In Debian and systems made from it, python3 comes without what makes virtual environments.
if [ "$SANDSHELL_ROOT" = yes ] && [ "$SANDSHELL_PACKAGE_MANAGER" = apt-get ]; then
  apt-get update && apt-get install -y --no-install-recommends python3-venv
  "$SANDSHELL_PYTOOL_PYTHON" -c 'import ensurepip' && exit
fi
echo "$SANDSHELL_PYTOOL_PYTHON has neither ensurepip nor pip, which requirements need:" \
  "install python3-venv there"
exit 1
