# matches.sh LIB HOW TERM FILES prints the lines that match: "=" and the name, then "LINE:TEXT" for
# each; after a hundred lines or so "+" and the number of those that follow, of how many files.
# search_dir has find run it.

lib=$1 how=$2 term=$3
shift 3
export LC_ALL=C
newline='
'

# First which files: one grep for all, unless a name has a newline, which nobody could tell from the
# end of the name.
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
	# busybox grep has no notion of binary files
	if [ "$(head -c 8192 "$1" | tr -cd '\000' | wc -c)" -eq 0 ]; then
		awk -f "$lib/visible.awk" -f "$lib/names.awk" "$1" | sed 's/^/=/'
		grep -n "$how" -e "$term" -- "$1" | cut -c 1-4096
		shown=$((shown + $(grep -c "$how" -e "$term" -- "$1")))
	fi
	shift
done
[ $# = 0 ] || grep -cI "$how" -e "$term" -- "$@" /dev/null | awk -F: '$NF > 0 { lines += $NF; files++ } END { print "+" lines ":" files }'
