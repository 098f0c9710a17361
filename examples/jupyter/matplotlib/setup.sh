#!/bin/sh
# A plugin of one's own: the library that the cells want.
set -e
if "$SANDSHELL_JUPYTER_PYTHON" -c 'import matplotlib' 2>/dev/null; then
	exit
elif [ "$SANDSHELL_ROOT" = yes ] && [ "$SANDSHELL_PACKAGE_MANAGER" = apt-get ]; then
	apt-get -q update
	apt-get install -q -y --no-install-recommends python3-matplotlib
else
	echo "matplotlib is missing; on Debian: apt-get install python3-matplotlib"
	exit 1
fi
