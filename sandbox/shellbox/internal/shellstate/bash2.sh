for __sandshell_l; do \builtin printf '@@arg %s\n' "$__sandshell_l"; done
\builtin printf '@@name %s\n' "$0"
\builtin printf '@@cwd '; \builtin pwd
[[ . -ef $PWD ]] || \builtin printf '@@gone\n'
for __sandshell_l in "${DIRSTACK[@]:1}"; do \builtin printf '@@dir %s\n' "$__sandshell_l"; done
\builtin printf '@@modes '; \builtin command -p stty -g
\builtin printf '@@seconds %s\n' "${SECONDS-}"
\builtin printf '@@lc_all\n'; \builtin declare -p LC_ALL
\builtin printf '@@history\n'; (\builtin declare HISTTIMEFORMAT=x; \builtin history -w /dev/stdout)
\builtin unset -v __sandshell_l
\builtin declare LC_ALL=C
\builtin printf '@@variables\n'; \builtin :
\builtin declare -p
\builtin compgen -A function | while \builtin read -r __sandshell_l; do
	\builtin printf '@@function %s\n' "$__sandshell_l"
	\builtin declare -pf -- "$__sandshell_l"
done
\builtin printf '@@aliases\n'; \builtin alias -p
\builtin printf '@@umask '; \builtin umask
\builtin printf '@@soft\n'; \builtin ulimit -Sa
\builtin printf '@@hard\n'; \builtin ulimit -Ha
\builtin printf '@@builtins\n'; \builtin enable -a
\builtin printf '@@completions\n'; \builtin complete -p
\builtin printf '@@hashed\n'; \builtin hash -l
\builtin printf '@@stat '
\builtin read -r __sandshell_l <"/proc/$$/stat" && \builtin printf '%s\n' "$__sandshell_l"
\builtin printf '@@status\n'
# in one piece: read goes back in a file that may have changed
\builtin printf '%s\n' "$(<"/proc/$$/status")"
\builtin unset -v GLOBIGNORE
\builtin printf '@@files\n'
for __sandshell_l in "/proc/$$/fd"/*; do
	if [[ $__sandshell_l -ef @TTY@ ]]; then
		\builtin printf '%s : tty\n' "${__sandshell_l##*/}"
	elif [[ -h $__sandshell_l ]]; then
		__sandshell_m= __sandshell_r=
		__sandshell_n=$(<"/proc/$$/fdinfo/${__sandshell_l##*/}")
		case $__sandshell_n in
		*mnt_id:*ino:*)
			__sandshell_m=${__sandshell_n##*mnt_id:?} __sandshell_r=${__sandshell_n##*ino:?}
			__sandshell_m=${__sandshell_m%%[!0-9]*} __sandshell_r=${__sandshell_r%%[!0-9]*}
			;;
		esac
		\builtin printf '%s %s ' "${__sandshell_l##*/}" "$__sandshell_m:$__sandshell_r"
		\builtin command -p readlink "$__sandshell_l" || \builtin printf '?\n'
	fi
done
\builtin printf '@@end\n'
