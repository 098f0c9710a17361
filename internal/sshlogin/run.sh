# Arguments: the SHA-256 of boxd for amd64 and for arm64, the directory or "", and boxd's own
# arguments. It prints "run SUM DIRECTORY" and becomes boxd, or prints "need SUM DIRECTORY" if boxd
# is missing, or "plain" and the reason if boxd cannot be there. It adds SUM and DIRECTORY to the
# arguments of boxd start, and DIRECTORY to those of other commands.
__say() { printf '%s\n' "$*"; exit 0; }
__is() { [ "$3" = "$__u" ]; }
case "$(uname -s) $(uname -m)" in
"Linux x86_64") __s=$1 ;;
"Linux aarch64") __s=$2 ;;
*)
	__say plain "the machine is $(uname -s) on $(uname -m)," \
		"and boxd is for Linux on amd64 and arm64"
	;;
esac
__d=$3
shift 3
case $__d in
'') __d=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}} && __d=${__d:+$__d/sandshell} ;;
'~/'*) __d=$HOME/${__d#'~/'} ;;
esac
case $__d in
/*) ;;
*) __say plain "its directory would be \"$__d\", which is no absolute path: set DialConfig.Boxd" ;;
esac
__m=$( (umask 077 && mkdir -p -- "$__d") 2>&1) || __say plain "its directory cannot be made:" $__m
# No other user may be able to put a program there.
__m=$(ls -ldn -- "$__d/." 2>&1) || __say plain "its directory cannot be looked at:" $__m
case $__m in
d????-??-*) ;;
*) __say plain "its directory $__d can be written to by others" ;;
esac
__u=$(id -u)
set -f
__is $__m || __say plain "its directory $__d is not of uid $__u"
set +f
__f=$__d/boxd-$__s
# A shell would execute a file that is no program as a script. boxd itself finds other damage.
if [ "$1" != again ] && [ -x "$__f" ] && IFS= read -r __m <"$__f"; then
	case $__m in
	?ELF*)
		printf 'run %s %s\n' "$__s" "$__d"
		case $1 in
		start) exec "$__f" "$@" "$__s" "$__d" ;;
		*) exec "$__f" "$@" "$__d" ;;
		esac
		;;
	esac
fi
__t=$__d/upload-try-$$
__m=$( (umask 077 && printf '#!/bin/sh\n' >"$__t" && chmod 700 "$__t") 2>&1) || {
	rm -f "$__t"
	__say plain "nothing can be written to $__d:" $__m
}
"$__t" 2>/dev/null || {
	rm -f "$__t"
	__say plain "no program can be executed in $__d: is it mounted noexec?"
}
rm -f "$__t"
__say need "$__s" "$__d"
