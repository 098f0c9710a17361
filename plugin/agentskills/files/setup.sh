#!/bin/sh
set -e
for program in awk cat cmp cp cut dd find grep head ln mktemp mv readlink sed sort tail tr wc; do
	command -v $program >/dev/null || {
		echo "the commands need $program, which is not installed here"
		exit 1
	}
done
umask 077
mkdir -p sessions # for each session, a file that says what is open there
bin/open --help >/dev/null || {
	echo "programs in $PWD cannot be executed (is it mounted noexec?)"
	exit 1
}
echo "$PWD/bin" >>"$SANDSHELL_PATH"
