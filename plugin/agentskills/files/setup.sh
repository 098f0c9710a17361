#!/bin/sh
set -e
for program in awk cat cmp cp cut dd find grep head ln mktemp mv readlink sed sort tail tr wc; do
	command -v $program >/dev/null || { echo "the commands are made of shell and $program, which is not here"; exit 1; }
done
umask 077
mkdir -p sessions # what is open in each
bin/open --help >/dev/null || { echo "nothing may be executed in $PWD (mounted noexec?)"; exit 1; }
echo "$PWD/bin" >>"$SANDSHELL_PATH"
