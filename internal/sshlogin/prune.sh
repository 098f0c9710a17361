# Argument: the directory or "". It removes boxd from the directory, and the directory if it is then
# empty.
__d=$1
case $__d in
'') __d=${XDG_CACHE_HOME:-$HOME/.cache}/sandshell ;;
'~/'*) __d=$HOME/${__d#'~/'} ;;
esac
__m=$(rm -f -- "$__d"/boxd-* "$__d"/upload-* 2>&1) || { printf 'failed - %s\n' "$__m"; exit 0; }
rmdir -- "$__d" 2>/dev/null
printf 'pruned - %s\n' "$__d"
