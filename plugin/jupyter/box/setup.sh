#!/bin/sh
# Finds or makes a python that has IPython's kernel, and puts execute_cli in PATH.
set -eu

python=
load() { "$1" -c 'import IPython, ipykernel, jupyter_client, zmq'; }
works() { python=$(command -v "$1") && load "$python" 2>/dev/null; }
find_python() {
	for p in python3 /usr/bin/python3 /usr/local/bin/python3 "$SANDSHELL_PLUGIN/venv/bin/python"; do
		! works "$p" || return 0
	done
	return 1
}

from_debian() {
	[ "$SANDSHELL_ROOT" = yes ] && [ "$SANDSHELL_PACKAGE_MANAGER" = apt-get ] || return 1
	apt-get -q update &&
		apt-get -q install -y --no-install-recommends python3-ipykernel python3-jupyter-client
}

from_pip() {
	command -v python3 >/dev/null || { echo "there is no python3 here"; return 1; }
	# Without the volume for pip's cache, pip would write a cache to the user's home.
	[ -n "${PIP_CACHE_DIR:-}" ] || export PIP_NO_CACHE_DIR=1
	python3 -m venv "$SANDSHELL_PLUGIN/venv" &&
		"$SANDSHELL_PLUGIN/venv/bin/pip" install --disable-pip-version-check --progress-bar off \
			ipykernel jupyter_client &&
		load "$SANDSHELL_PLUGIN/venv/bin/python" # prints why if it fails
}

if ! find_python; then
	from_debian || from_pip || true
	find_python || {
		echo "no python3 here has ipykernel and jupyter_client," \
			"and neither apt-get nor pip could install them (see above);" \
			"on Debian: apt-get install python3-ipykernel python3-jupyter-client"
		exit 1
	}
fi

# On the user's own machine, even caches must stay in the plugin's directory: see kernels.py.
[ "$SANDSHELL_BOX" != LocalBox ] || mkdir -p cache

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
mkdir -p bin
{
	echo '#!/bin/sh'
	echo "exec $(quoted "$python") $(quoted "$SANDSHELL_PLUGIN/execute_cli.py") \"\$@\""
} >bin/execute_cli
chmod 755 bin/execute_cli
bin/execute_cli --check
echo "$SANDSHELL_PLUGIN/bin" >>"$SANDSHELL_PATH"
echo "SANDSHELL_JUPYTER_PYTHON=$python" >>"$SANDSHELL_ENV"
