__sandshell_l=$(\unset -f type; \type command)
\unset -f command
\command printf '@@command %s\n' "$__sandshell_l"
\command printf '@@flags %s\n@@options\n' "$-"
\set +o
\set +x +e +u +v +f +C +a
\command printf '@@aliases\n'
\command alias
\unalias -a
