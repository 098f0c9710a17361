# Arguments: the directory, the SHA-256, a temporary name, and the size. It prints which form of the
# program it takes, reads the program from the standard input, and prints "brought", or what is
# wrong. Several may run at the same time, with the same version or others.
t=$1/$3
no() { rm -f "$t"; printf '%s\n' "$*"; exit 0; }
if command -v gzip >/dev/null; then
	echo gzip
	m=$( (umask 077 && gzip -dc >"$t") 2>&1)
else
	echo plain
	m=$( (umask 077 && cat >"$t") 2>&1)
fi || no "its copy ended with status $? and said: ${m:-nothing}"
[ "$(wc -c <"$t")" -eq "$4" ] || no "it arrived incomplete"
# boxd also executes itself as another user, to serve that user's files. It does so as
# /proc/self/exe, for which the mode of the file matters, but not those of the directories on its
# path.
chmod 711 "$t" || no "it cannot be made executable"
m=$("$t" check "$2" 2>&1) ||
	no "it does not run there: it ended with status $? and said: ${m:-nothing}"
mv -f "$t" "$1/boxd-$2" || no "it cannot be renamed"
echo brought
