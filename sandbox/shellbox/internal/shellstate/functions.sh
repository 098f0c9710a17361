# Functions cannot be listed. But their names are in the memory of this subshell, which is that of
# the shell: words before a NUL. Each is asked about. If the probe is not found, the memory cannot
# be searched. Without a PATH, no disk is. (An assignment that fails would end the subshell.)
__sandshell_l=$(\readonly -p)
case $__sandshell_l in *'readonly PATH'*) ;; *) PATH=/dev/null ;; esac
__sandshell_probe() { :; }
\command printf '@@functions\n'
while \command read -r __sandshell_l; do
	case $__sandshell_l in
	*'[stack]') ;;
	*' rw-p '*)
		__sandshell_r=${__sandshell_l%% *}
		__sandshell_m=$((0x${__sandshell_r%-*})) __sandshell_r=$((0x${__sandshell_r#*-}))
		{ \command -p dd bs=4096 "skip=$((__sandshell_m / 4096))" \
			"count=$(((__sandshell_r - __sandshell_m) / 4096))" <&3; } 3</proc/self/mem
		;;
	esac
done </proc/self/maps | \command -p tr -cs 'A-Za-z0-9_\000' ' ' | \command -p tr '\000' '\n' |
	\command -p sed -n 's/.* //
/^[A-Za-z_]/p' | \command -p sort -u |
	while \command read -r __sandshell_l; do \command type "$__sandshell_l"; done |
	while \command read -r __sandshell_l; do
		case $__sandshell_l in *' function') \command printf '%s\n' "$__sandshell_l" ;; esac
	done
