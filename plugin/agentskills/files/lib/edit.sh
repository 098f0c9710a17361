# Changing a file. A copy is changed and checked, and then replaces the file.

. "$lib/syntax.sh"

# workplace makes the directory work. It is in the plugin's directory if possible, because on the
# user's own machine nothing else should be written.
workplace() {
	umask_was=$(umask)
	umask 077
	work=$(mktemp -d "$sessions/work.XXXXXX" 2>/dev/null ||
		mktemp -d "${TMPDIR:-/tmp}/work.XXXXXX") ||
		fail "There is no room for a copy. Nothing is changed."
	umask "$umask_was"
	beside= locked=
	trap 'rm -rf "$work" ${beside:+"$beside"} ${locked:+"$locked"}' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# text copies TEXT, which is the standard input, to $work/text.
text() {
	[ ! -t 0 ] ||
		usage "TEXT is missing: end the command's line with <<'END'," \
			"then write the lines of TEXT, then a line END"
	cat >"$work/text" || fail "There is no room for TEXT. Nothing is changed."
	! has_zero "$work/text" || fail "TEXT has zero bytes. Nothing is changed."
}

# snapshot [FILE] chooses the file to change, and copies it to $work/old. target is the file, or
# what it links to if it is a symbolic link.
snapshot() {
	if [ "$1" ]; then choose "$1"; else choose; fi
	target=$(readlink -f -- "$file" && echo x) ||
		fail "$(shown "$file") is a symbolic link that cannot be followed."
	target=${target%?x}
	[ -w "$target" ] ||
		fail "$(shown "$file") is read-only for $(id -un 2>/dev/null || id -u). Nothing is changed."
	workplace
	cp "$target" "$work/old" || fail "There is no room for a copy. Nothing is changed."
	! has_zero "$work/old" ||
		fail "$(shown "$file") is binary: it has zero bytes. Nothing is changed."
	measure "$work/old"
	was_final=$final was_lines=$lines
}

# by_number checks that the file has the lines start to end, and has not changed since it was last
# shown, for instance by a formatter or another session.
by_number() {
	if [ "$seen" ] && [ "$seen" != "$(stamp "$work/old")" ]; then
		echo "$(shown "$file") has changed since it was last shown," \
			"so its lines may have other numbers. Nothing is changed by this." \
			"It is now as follows; if the numbers are right, do the same again." >&2
		first=$((start - height / 6))
		show_window
		exit 1
	fi
	[ "$end" -le "$lines" ] ||
		fail "$(shown "$file") has $(count "$lines" line), so there is no line $end." \
			"Nothing is changed."
}

# change replaces lines start to end by $work/text, unless that breaks the syntax. To insert, end is
# start-1. final is 0 if the new file's last line has no newline.
change() {
	new_contents >"$work/new" || fail "There is no room for the new file. Nothing is changed."
	measure "$work/new"
	new_end=$((end + lines - was_lines)) # the last of the new lines
	broken=
	if ! checked "$target" "$work/new" "$work/errors"; then
		if checked "$target" "$work/old" "$work/errors.old"; then refuse; fi
		broken=yes
	fi
	replace_file
	[ -z "$broken" ] ||
		note_errors "Note that there is a syntax error, as there was before:" "$work/errors" \
			"$target"
	report
	# A part of the window is enough, because the model knows the lines around it.
	first=$((start - 10))
	[ $((new_end - start + 21)) -ge "$height" ] || height=$((new_end - start + 21))
	show_window
}

# new_contents prints the new file. Old lines are copied byte by byte. New lines end as the lines
# around them do.
new_contents() {
	near=$((start < lines ? start : lines)) cr=0
	[ "$near" != "$lines" ] || [ "$was_final" = 1 ] || near=$((near - 1))
	if [ "$near" -ge 1 ] && has_cr "$work/old" "$near"; then cr=1; fi
	if [ "$start" -gt 1 ]; then
		head -n $((start - 1)) "$work/old" || return
	elif has_mark "$work/old" && ! has_mark "$work/text"; then
		printf "$mark"
	fi
	if [ "$start" -gt "$lines" ] && [ "$was_final" = 0 ]; then # after a line without a newline
		if [ $cr = 1 ]; then printf '\r\n'; else echo; fi
	fi
	awk -v cr=$cr -v final=$((end < lines || final)) -f "$lib/ends.awk" "$work/text" || return
	if [ "$end" = 0 ] && has_mark "$work/old"; then
		tail -c +4 "$work/old"
	elif [ "$end" -lt "$lines" ]; then
		tail -n +$((end + 1)) "$work/old"
	fi
}

# mark is the byte order mark of UTF-8, with which some editors begin a file. It belongs to the
# file, not to line 1.
mark='\357\273\277'
has_mark() { [ "$(dd if="$1" bs=3 count=1 2>/dev/null && echo x)" = "$(printf "$mark")x" ]; }

# report prints a line that says what was done.
report() {
	old=$(count $((end - start + 1)) line) new=$(count $((new_end - start + 1)) line)
	if [ "$end" -lt "$start" ]; then
		echo "Inserted $new at line $start."
	elif [ "$new_end" -lt "$start" ]; then
		echo "Deleted $old at line $start."
	else
		echo "Replaced $old at line $start by $new."
	fi
}

# refuse says what is wrong with the edit, and exits.
refuse() {
	{
		note_errors "Refused: the edit would break the syntax. $(shown "$file") is unchanged." \
			"$work/errors" "$target"
		echo "With the edit it would have been:"
		some_lines "$work/new" "$new_end" "$lines"
		echo "It is:"
		some_lines "$work/old" "$end" "$was_lines"
		echo "Correct the edit (START, END, the indentation of each line of TEXT) and try again."
	} >&2
	exit 1
}

# some_lines FILE END TOTAL shows the lines start to END with three lines around them. Of many lines
# it shows the first and the last.
some_lines() {
	from=$((start > 3 ? start - 3 : 1)) to=$(($2 + 3 < $3 ? $2 + 3 : $3))
	if [ $((to - from)) -lt 50 ]; then
		show_lines "$1" "$from" "$to"
	else
		show_lines "$1" "$from" $((from + 24))
		echo "($((to - from - 49)) more lines)"
		show_lines "$1" $((to - 24)) "$to"
	fi
}

# replace_file gives the file its new contents by a rename, so that nobody sees half a file and a
# full disk does no harm. It writes to the file itself if a rename would change more than the
# contents (owner, mode, access list, hard links) or cannot be done (a directory that cannot be
# written, a file that is mounted).
replace_file() {
	lock
	cmp -s "$target" "$work/old" ||
		fail "$(shown "$file") was changed by another program during this edit." \
			"Nothing is changed by this: open it again."
	if beside=$(mktemp "${target%/*}/.edit.XXXXXX" 2>/dev/null); then
		{ cp -p "$target" "$beside" && cat "$work/new" >"$beside"; } 2>/dev/null ||
			fail "There is no room for the new file. Nothing is changed."
		if [ "$(properties "$target")" = "$(properties "$beside")" ] &&
			mv -f "$beside" "$target" 2>/dev/null; then
			beside=
		fi
	fi
	cmp -s "$target" "$work/new" || cat "$work/new" >"$target" || {
		cat "$work/old" >"$target"
		fail "It could not be written. Nothing is changed."
	}
	rm -f "$locked"
	locked=
}

# lock keeps other edits from changing the file between the comparison and the rename. The lock is a
# symbolic link: making one fails if it exists, and not every system has flock. It points to the
# process that holds it. If that process was killed, the next edit removes the lock.
lock() {
	[ -w "$sessions" ] || return 0
	link=$sessions/lock tries=0 # one for all files: it is held for milliseconds
	until ln -s $$ "$link" 2>/dev/null; do
		holder=$(readlink "$link") && ! kill -0 "$holder" 2>/dev/null && rm -f "$link"
		tries=$((tries + 1))
		[ $tries -lt 20 ] ||
			fail "$(shown "$file") is being changed by another command." \
				"Nothing is changed: try again."
		sleep 1
	done
	locked=$link
}

# properties FILE prints what a rename must not change: mode (with a + for an access list), number
# of hard links, owner and group.
properties() { ls -lnd -- "$1" | awk '{ print $1, $2, $3, $4; exit }'; }
