#!/bin/sh
# Installs a package by name with pip. Like the real package index, this one says how long its files
# may be cached.
set -e
python3 index.py >port &
index=$!
trap 'kill $index' EXIT
while ! [ -s port ]; do sleep 0.05; done
python3 -m venv venv
# Over plain http, pip caches only what comes from a trusted host.
venv/bin/pip install --disable-pip-version-check --trusted-host 127.0.0.1:8000 \
	--index-url "http://127.0.0.1:$(cat port)/simple/" teapot
echo "$PWD/venv/bin" >>"$SANDSHELL_PATH"
