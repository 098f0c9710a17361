#!/bin/sh
set -e
command -v tar >/dev/null || { echo "there is no tar: install it first"; exit 1; }
mkdir -p kept
echo "CHECKPOINTS=$PWD/kept" >>"$SANDSHELL_ENV"
echo "$PWD/bin" >>"$SANDSHELL_PATH"
echo "in $SANDSHELL_BOX, checkpoints are kept in $PWD/kept"
