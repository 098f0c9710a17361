#!/bin/sh
# Installs the library that the cells need.
set -e
if "$SANDSHELL_JUPYTER_PYTHON" -c 'import matplotlib' 2>/dev/null; then
	exit
elif [ "$SANDSHELL_ROOT" = yes ] && [ "$SANDSHELL_PACKAGE_MANAGER" = apt-get ]; then
	apt-get -q update
	apt-get install -q -y --no-install-recommends python3-matplotlib
else
	echo "there is no matplotlib: install it, on Debian with apt-get install python3-matplotlib"
	exit 1
fi
