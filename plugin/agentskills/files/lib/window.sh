# The window, which is the part of the open file that is shown.

case $SANDSHELL_WINDOW in
'' | *[!0-9]* | 0* | ?????*) height=100 ;;
*) height=$SANDSHELL_WINDOW ;;
esac

# choose [PATH] opens PATH, or takes the open file. It sets file, first, seen and what measure sets.
choose() {
	if [ "$1" ]; then
		look "$1"
		given=$file
		recall
		[ "$file" = "$given" ] || first=1 seen=
		file=$given
	else
		[ $# = 0 ] || usage "a file's name is empty"
		recall
		[ "$file" ] || fail "No file is open in this session: open one first."
		look "$file"
	fi
}

# look PATH sets file, and what measure sets. It fails if the file is not a text that can be read.
look() {
	absolute "$1"
	[ -e "$file" ] || fail "There is no file $(shown "$file")."
	[ ! -d "$file" ] || fail "$(shown "$file") is a directory."
	[ -f "$file" ] || fail "$(shown "$file") is a device, a socket or a pipe, not a file."
	[ -r "$file" ] || fail "$(shown "$file") cannot be read by $(id -un 2>/dev/null || id -u)."
	! has_zero "$file" 8192 || fail "$(shown "$file") is binary, or in UTF-16: it has zero bytes."
	measure "$file"
}

# has_zero FILE [N] succeeds if the file, or its first N bytes, has a zero byte.
has_zero() {
	[ "$(if [ "$2" ]; then head -c "$2" "$1"; else cat "$1"; fi | tr -cd '\000' | wc -c)" -gt 0 ]
}

# measure FILE sets lines to the number of lines, final to 0 if the last line has no newline and
# else to 1, and ends to a remark if lines end with CRLF.
measure() {
	lines=$(($(wc -l <"$1"))) final=1 ends=
	if [ -s "$1" ] && [ "$(tail -c 1 "$1" | wc -l)" -eq 0 ]; then
		lines=$((lines + 1)) final=0
	fi
	! has_cr "$1" 1 || ends=", which end with CRLF"
}

# has_cr FILE LINE succeeds if the line ends with CRLF.
has_cr() { [ "$(head -n "$2" "$1" | tail -c 2 | head -c 1 | tr -cd '\r' | wc -c)" -gt 0 ]; }

# around LINE moves the window so that the line is in its upper part.
around() {
	[ "$1" -le "$lines" ] ||
		fail "$(shown "$file") has $(count "$lines" line), so there is no line $1."
	first=$(($1 - height / 6))
}

# show_window shows and remembers the window. first may be outside the file.
show_window() {
	[ "$first" -le $((lines - height + 1)) ] || first=$((lines - height + 1))
	[ "$first" -ge 1 ] || first=1
	last=$((first + height - 1))
	[ "$last" -le "$lines" ] || last=$lines
	remember
	printf '[File: %s (%s total%s)]\n' "$(shown "$file")" "$(count "$lines" line)" "$ends"
	[ "$first" = 1 ] || echo "($(count $((first - 1)) 'more line') above)"
	show_lines "$file" "$first" "$last"
	[ "$last" = "$lines" ] || echo "($(count $((lines - last)) 'more line') below)"
	[ "$lines" -gt 0 ] || echo "(The file is empty: insert 0 writes to it.)"
}

# show_lines FILE FROM TO shows lines with their numbers.
show_lines() { awk -v from="$2" -v to="$3" -f "$lib/visible.awk" -f "$lib/lines.awk" "$1"; }
