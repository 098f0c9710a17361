# What each command begins with: its arguments, its help, and the ways to end. Exit status: 0 done,
# 1 refused or not found, 2 wrong usage.

export LC_ALL=C # bytes, in each awk, sed and grep: a file may be in any encoding, and in none
unset CDPATH    # which makes cd print
command=${0##*/}
plugin=$(cd -- "${0%/*}/.." && pwd -P)
lib=$plugin/lib
status=0

# help prints the comment at the command's top.
help() { sed -n '1d; /^#/!q; s/^# \{0,1\}//p' "$0"; }

usage() {
	printf '%s: %s\nusage: %s\n(%s --help tells more)\n' "$command" "$1" "$(help | head -n 1)" "$command" >&2
	exit 2
}

fail() {
	printf '%s\n' "$1" >&2
	exit 1
}

# arguments MIN MAX WORDS checks their number.
arguments() {
	min=$1 max=$2
	shift 2
	[ $# -ge "$min" ] || usage "an argument is missing"
	[ $# -le "$max" ] || usage "there are too many arguments (quote what has spaces)"
}

# whole NAME VALUE MIN checks that the value is a whole number. With ten digits arithmetic is safe
# in any shell, and with a leading 0 it would be octal.
whole() {
	case $2 in
	0 | [1-9] | [1-9]*[0-9]) case $2 in *[!0-9]* | ??????????*) ;; *) [ "$2" -ge "$3" ] && return ;; esac ;;
	esac
	usage "$1 is a line number from $3, not \"$(shown "$2")\""
}

# shown makes a name safe to print: no control characters.
shown() { printf %s "$1" | tr '\000-\037\177' '?'; }

# count N NOUN
count() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 ${2}s"; fi; }

# absolute PATH sets file to its absolute form. A here "~" has not been expanded by a shell: models
# put names in quotes.
absolute() {
	file=$1
	[ "$file" ] || usage "a file's name is empty"
	case $file in
	/*) ;;
	"~/"*) [ -e "./$file" ] || file=$HOME/${file#??} ;;
	esac
	case $file in
	/*) ;;
	*) file=${PWD%/}/$file ;;
	esac
	# Without "." and "..", where the directory is there. The x keeps a newline at the end.
	if tidy=$(cd -- "${file%/*}/" 2>/dev/null && printf '%sx' "$PWD"); then
		tidy=${tidy%x}
		file=${tidy%/}/${file##*/}
	fi
}

regex=
while [ $# -gt 0 ]; do
	case $1 in
	--help)
		help
		exit 0
		;;
	--)
		shift
		break
		;;
	--regex)
		case $command in search_*) regex=yes ;; *) usage "there is no option --regex" ;; esac
		shift
		;;
	-?*) usage "there is no option $(shown "$1"); if it is an argument, put -- before it" ;;
	*) break ;;
	esac
done
