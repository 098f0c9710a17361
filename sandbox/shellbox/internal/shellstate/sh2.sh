\command printf '@@variables\n'; \set
\command printf '@@exported\n'; \export -p
\command printf '@@readonly\n'; \readonly -p
for __sandshell_l; do \command printf '@@arg %s\n' "$__sandshell_l"; done
\command printf '@@cwd '; \command pwd
[ . -ef "$PWD" ] || \command printf '@@gone\n'
\command printf '@@modes '; \command -p stty -g
\command printf '@@umask '; \command umask
\command printf '@@soft\n'
for __sandshell_l in c d e f i l m n p q r s t u v w x; do
	\command printf '%s ' "$__sandshell_l"
	\command ulimit -S "-$__sandshell_l" || \command printf '\n'
done
\command printf '@@hard\n'
for __sandshell_l in c d e f i l m n p q r s t u v w x; do
	\command printf '%s ' "$__sandshell_l"
	\command ulimit -H "-$__sandshell_l" || \command printf '\n'
done
\command printf '@@stat '
\command read -r __sandshell_l <"/proc/$$/stat" && \command printf '%s\n' "$__sandshell_l"
\command printf '@@status\n'
while \command read -r __sandshell_l; do
	case $__sandshell_l in Cpus_allowed_list:*) \command printf '%s\n' "$__sandshell_l" ;; esac
done <"/proc/$$/status"
\command printf '@@files\n'
for __sandshell_l in "/proc/$$/fd"/*; do
	if [ "$__sandshell_l" -ef @TTY@ ]; then
		\command printf '%s : tty\n' "${__sandshell_l##*/}"
	elif [ -h "$__sandshell_l" ]; then
		__sandshell_m= __sandshell_r=
		while \command read -r __sandshell_n; do
			case $__sandshell_n in
			mnt_id:*) __sandshell_m=${__sandshell_n##*[!0-9]} ;;
			ino:*) __sandshell_r=${__sandshell_n##*[!0-9]} ;;
			esac
		done <"/proc/$$/fdinfo/${__sandshell_l##*/}"
		\command printf '%s %s ' "${__sandshell_l##*/}" "$__sandshell_m:$__sandshell_r"
		\command -p readlink "$__sandshell_l" || \command printf '?\n'
	fi
done
