# The open file and its window belong to the session, that is, to the shell on this terminal. A
# command cannot set the shell's variables, so they are in the file state, whose name has the
# process id and the start time of the session's leader. A shell that replaces one that has ended
# has no file open. Without a terminal there is no state.

sessions=$plugin/sessions
state=

# begun PID prints the start time of a process. The form differs between systems.
begun() {
	if [ -e /proc/self/stat ]; then
		{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
		set -- ${stat##*) } # the program's name, before it, may have spaces
		echo "${20}"
	else
		ps -o lstart= -p "$1" | tr -cd 0-9A-Za-z
	fi
}

if { read -r stat </proc/self/stat; } 2>/dev/null; then
	leader=$(set -- ${stat##*) } && [ "$5" != 0 ] && echo "$4")
else
	tty=$(ps -o tty= -p $$)
	case $tty in
	*'?'* | - | '') leader= ;; # none
	*) leader=$(ps -o pid=,stat= -t "$tty" 2>/dev/null | awk '$2 ~ /s/ { print $1; exit }') ;;
	esac
fi
[ -z "$leader" ] || [ ! -w "$sessions" ] || state=$sessions/$leader-$(begun "$leader")

# recall sets file to the open file, first to the first line of its window, and seen to its stamp
# when it was last shown.
recall() {
	file= first=1 seen=
	[ -f "$state" ] || return
	{
		read -r first seen
		file=$(cat && echo x)
		file=${file%x}
	} <"$state"
}

# stamp FILE prints a checksum of the file. Its modification time would not show a second change in
# the same second. POSIX has cksum; busybox often has only md5sum.
stamp() { { cksum || md5sum; } <"$1" 2>/dev/null; }

# remember writes file, first and the file's stamp. It renames, so that nobody reads half of them.
remember() {
	[ "$state" ] || return 0
	[ -f "$state" ] || forget_ended
	(umask 077 && printf '%s %s\n%s' "$first" "$(stamp "$file")" "$file" >"$sessions/new.$$") &&
		mv -f "$sessions/new.$$" "$state"
}

# forget_ended removes the files of sessions that have ended, and of commands that were killed.
forget_ended() {
	for old in "$sessions"/[0-9]*-*; do
		[ -e "$old" ] || continue
		pid=${old##*/}
		pid=${pid%%-*}
		case $old in
		"$sessions/$pid-$(begun "$pid")") ;;
		*) rm -f "$old" ;;
		esac
	done
	find "$sessions" '(' -name 'work.*' -o -name 'new.*' -o -name lock ')' -mtime +0 \
		-exec rm -rf {} + 2>/dev/null
}
