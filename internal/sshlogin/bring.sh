# Arguments: the directory, the SHA-256, a name for the meantime, and the size. It says which form
# of the program it takes, takes it from the standard input, and says "brought", or what is wrong.
# Others that bring another version, or the same at the same time, are not disturbed.
t=$1/$3
no() { rm -f "$t"; printf '%s\n' "$*"; exit 0; }
if command -v gzip >/dev/null; then
	echo gzip
	m=$( (umask 077 && gzip -dc >"$t") 2>&1)
else
	echo plain
	m=$( (umask 077 && cat >"$t") 2>&1)
fi || no "its copy ended with status $? and said: ${m:-nothing}"
[ "$(wc -c <"$t")" -eq "$4" ] || no "it came incomplete"
# boxd executes itself as another user, too, to serve that user's files. It is /proc/self/exe there:
# the directories on its path do not count, its own mode does.
chmod 711 "$t" || no "it cannot be made executable"
m=$("$t" check "$2" 2>&1) || no "it does not run there: it ended with status $? and said: ${m:-nothing}"
mv -f "$t" "$1/boxd-$2" || no "it cannot be renamed"
echo brought
