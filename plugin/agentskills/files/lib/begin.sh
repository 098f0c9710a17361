# Every command begins with this file: options, help, and functions for arguments and errors. The
# exit status is 0 for done, 1 for refused or not found, 2 for wrong usage.

export LC_ALL=C # awk, sed and grep handle bytes, because a file may be in any encoding
unset CDPATH    # with CDPATH, cd prints
command=${0##*/}
plugin=$(cd -- "${0%/*}/.." && pwd -P)
lib=$plugin/lib
status=0

# help prints the comment at the top of the command.
help() { sed -n '1d; /^#/!q; s/^# \{0,1\}//p' "$0"; }

# usage TEXT... says what is wrong with the arguments, and exits.
usage() {
	printf '%s: %s\nusage: %s\n(%s --help tells more)\n' \
		"$command" "$*" "$(help | head -n 1)" "$command" >&2
	exit 2
}

# fail TEXT... says why the command cannot do its work, and exits.
fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

# arguments MIN MAX WORDS checks the number of WORDS.
arguments() {
	min=$1 max=$2
	shift 2
	[ $# -ge "$min" ] || usage "an argument is missing"
	[ $# -le "$max" ] || usage "there are too many arguments (quote what has spaces)"
}

# whole NAME VALUE MIN checks that VALUE is a whole number from MIN on. It has at most nine digits,
# which every shell can calculate with, and no leading 0, which would make it octal.
whole() {
	case $2 in
	0 | [1-9] | [1-9]*[0-9])
		case $2 in
		*[!0-9]* | ??????????*) ;;
		*) [ "$2" -ge "$3" ] && return ;;
		esac
		;;
	esac
	usage "$1 is a line number from $3, not \"$(shown "$2")\""
}

# shown TEXT prints TEXT with "?" in place of control characters.
shown() { printf %s "$1" | tr '\000-\037\177' '?'; }

# count N NOUN prints N and the noun, in the plural unless N is 1.
count() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 ${2}s"; fi; }

# absolute PATH sets file to the absolute form of PATH. A "~" may still be there, because models put
# names in quotes.
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
	# If the directory exists, remove "." and "..". The x keeps a newline at the end.
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
