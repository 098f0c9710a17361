# Searching: fixed text unless --regex, and an end to what is shown.

matches_max=100

# term TERM checks it, and sets how to grep for it.
term() {
	case $1 in
	'') usage "TERM is empty" ;;
	*'
'*) usage "TERM has several lines, and a search finds one" ;;
	esac
	how=-F
	[ -z "$regex" ] || how=-E
	why=$(echo | grep "$how" -e "$1" 2>&1) || [ $? = 1 ] || usage "TERM is not a regular expression: $(shown "${why#grep: }")"
}

# directory PATH sets dir, in a form that cannot be taken for an option of find.
directory() {
	dir=$1
	case $dir in
	'') usage "DIR is empty" ;;
	/* | . | ./*) ;;
	"~" | "~/"*) [ -e "./$dir" ] && dir=./$dir || dir=$HOME${dir#?} ;;
	*) dir=./$dir ;;
	esac
	[ -d "$dir" ] || fail "There is no directory $(shown "$1")."
	[ -r "$dir" ] && [ -x "$dir" ] || fail "$(shown "$1") may not be read by $(id -un 2>/dev/null || id -u)."
	# find does not go through a symbolic link, but for a slash at its end
	[ ! -L "$dir" ] || dir=$dir/
}
