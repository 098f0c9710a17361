# Searching.

# matches_max is how many matches are shown.

matches_max=100

# term TERM checks TERM, and sets how to grep's option for it.
term() {
	case $1 in
	'') usage "TERM is empty" ;;
	*'
'*) usage "TERM has several lines: search for one line" ;;
	esac
	how=-F
	[ -z "$regex" ] || how=-E
	why=$(echo | grep "$how" -e "$1" 2>&1) || [ $? = 1 ] ||
		usage "TERM is not a regular expression: $(shown "${why#grep: }")"
}

# directory PATH sets dir to a form of PATH that find does not take for an option.
directory() {
	dir=$1
	case $dir in
	'') usage "DIR is empty" ;;
	/* | . | ./*) ;;
	"~" | "~/"*) [ -e "./$dir" ] && dir=./$dir || dir=$HOME${dir#?} ;;
	*) dir=./$dir ;;
	esac
	[ -d "$dir" ] || fail "There is no directory $(shown "$1")."
	[ -r "$dir" ] && [ -x "$dir" ] ||
		fail "$(shown "$1") cannot be read by $(id -un 2>/dev/null || id -u)."
	# find follows a symbolic link only if a slash is at its end.
	[ ! -L "$dir" ] || dir=$dir/
}
