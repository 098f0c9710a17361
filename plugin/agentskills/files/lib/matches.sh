# matches.sh LIB HOW TERM FILES prints the lines that match, for search_dir: "=" and the name of a
# file, then "LINE:TEXT" for each line. After about a hundred lines, it prints "+", the number of
# further lines, ":" and the number of their files.

lib=$1 how=$2 term=$3
shift 3
export LC_ALL=C
newline='
'

# Find the files that match. One grep does it for all, unless a name has a newline, which looks like
# the end of a name.
case $* in
*"$newline"*)
	n=$#
	for f; do
		if grep -q "$how" -e "$term" -- "$f"; then set -- "$@" "$f"; fi
	done
	shift "$n"
	;;
*)
	IFS=$newline
	set -f
	set -- $(grep -lI "$how" -e "$term" -- "$@")
	;;
esac

shown=0
while [ $# -gt 0 ] && [ "$shown" -lt 100 ]; do
	# busybox grep does not know binary files.
	if [ "$(head -c 8192 "$1" | tr -cd '\000' | wc -c)" -eq 0 ]; then
		awk -f "$lib/visible.awk" -f "$lib/names.awk" "$1" | sed 's/^/=/'
		grep -n "$how" -e "$term" -- "$1" | cut -c 1-4096
		shown=$((shown + $(grep -c "$how" -e "$term" -- "$1")))
	fi
	shift
done
[ $# = 0 ] || grep -cI "$how" -e "$term" -- "$@" /dev/null |
	awk -F: '$NF > 0 { lines += $NF; files++ } END { print "+" lines ":" files }'
