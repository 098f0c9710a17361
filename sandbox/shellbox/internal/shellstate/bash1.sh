__sandshell_o=${SHELLOPTS-} __sandshell_b=${BASHOPTS-} __sandshell_s=$(\builtin shopt)
__sandshell_f=$(POSIXLY_CORRECT=${POSIXLY_CORRECT-@unset}
	\trap - DEBUG
	\unset -f typeset
	\typeset -p POSIXLY_CORRECT
	\typeset -pf builtin enable)
POSIXLY_CORRECT=1
\unset -f builtin enable
__sandshell_e=$(\enable -n)
\enable builtin printf set trap unset shopt eval declare history complete hash alias ulimit \
	umask command read enable pwd compgen
\builtin set +o posix
\builtin printf '@@shellopts %s\n@@bashopts %s\n@@shopts\n%s\n@@early\n%s\n@@disabled\n%s\n' \
	"$__sandshell_o" "$__sandshell_b" "$__sandshell_s" "$__sandshell_f" "$__sandshell_e" >&9
\builtin printf '@@traps\n' >&9
\builtin trap -p >&9
\builtin trap - DEBUG ERR RETURN EXIT
\builtin set +xeuvfC +o noexec +o keyword +o allexport
\builtin unset -v __sandshell_o __sandshell_b __sandshell_s __sandshell_f __sandshell_e
\builtin shopt -u expand_aliases nullglob failglob nocasematch xpg_echo
