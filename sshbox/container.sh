# What a container's main process does: it makes the files of an sshd out of what comes on standard input, says on
# standard output whether it can, and becomes the sshd, which goes on with the same streams. containerCommand reads this
# script, in front of which stands
#   set -- USER PUBLIC-KEY CONFIGURATION
# the user by name or id. Then comes the sshd's private key and a line with a full stop. read takes byte by byte from a
# pipe: what follows is left to the sshd.
set -f
umask 022
dir=/run/sandshell
say() { printf 'sandshell %s\n' "$*"; }
no() { say "$@"; exit 1; }

[ -r /etc/passwd ] || no no-user
name=
while IFS=: read -r n _ id _ _ _ sh || [ -n "$n" ]; do
	if [ "$n" = "$1" ]; then name=$n; shell=$sh; break; fi
	if [ "$id" = "$1" ] && [ -z "$name" ]; then name=$n; shell=$sh; fi
done </etc/passwd
[ -n "$name" ] || no no-user
case $shell in */nologin | */false) no no-shell "$name" "$shell" ;; esac

sshd=
for d in /usr/sbin /usr/local/sbin /sbin /usr/bin /usr/local/bin /bin; do
	if [ -x "$d/sshd" ]; then sshd=$d/sshd; break; fi
done
[ -n "$sshd" ] || no no-sshd

# sshd takes an account whose password begins with an exclamation mark, as useradd makes them, for locked, unless PAM decides.
# An asterisk is no password either, and no lock. Where the file cannot be written, PAM may decide.
pam=no
if [ -r /etc/shadow ]; then
	all=
	locked=
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		"$name:!"*) locked=1; rest=${line#*:*:}; line=$name:*:$rest ;;
		esac
		all="$all$line
"
	done </etc/shadow
	if [ -n "$locked" ] && ! { printf %s "$all" >/etc/shadow; } 2>/dev/null; then
		pam=yes
	fi
fi

mkdir -p /run/sshd 2>/dev/null # where Debian's sshd confines its unprivileged part
(
	umask 077
	while IFS= read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done >"$dir/host_key"
) && printf '%s\n' "$2" >"$dir/authorized_keys" && printf '%s\nUsePAM %s\n' "$3" "$pam" >"$dir/sshd_config" || no no-files
say ok "$name"
exec "$sshd" -i -e -f "$dir/sshd_config"
