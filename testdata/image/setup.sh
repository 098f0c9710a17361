#!/bin/sh
# Runs as root inside the image, after the packages of packages.txt: the same
# for an image made by mmdebstrap and for one made by docker build.
set -eu

# The unprivileged user. Its sudo asks for the password, which is no secret:
# the tests of password prompts type it.
useradd --create-home --uid 1000 --shell /bin/bash --groups sudo user
echo 'user:sandshell' | chpasswd

# sshd refuses to start without its privilege separation directory, and nobody
# may share the host keys of an image.
mkdir -p /run/sshd
rm -f /etc/ssh/ssh_host_*

# apt-get source needs deb-src. Debian's images have deb822 sources, mmdebstrap
# writes one-line ones.
if [ -s /etc/apt/sources.list ]; then
	sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/tmp/deb-src
	cat /tmp/deb-src >>/etc/apt/sources.list
	rm /tmp/deb-src
fi
for file in /etc/apt/sources.list.d/*.sources; do
	[ ! -e "$file" ] || sed -i 's/^Types: deb$/Types: deb deb-src/' "$file"
done

# A proxy on the build machine's loopback is not there inside a container.
for file in /etc/apt/apt.conf.d/*; do
	sed -i '/Proxy.*\(localhost\|127\.[0-9]\|\[::1\]\)/d' "$file"
done

# apt-get in a container: no services started, no fsync, no translations, and
# no documentation but the licences.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe-io
echo 'Acquire::Languages "none";' >/etc/apt/apt.conf.d/no-languages
cat >/etc/dpkg/dpkg.cfg.d/no-documentation <<'END'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-include /usr/share/locale/locale.alias
END
find /usr/share/doc /usr/share/man /usr/share/info -type f ! -name copyright -delete
find /usr/share/doc /usr/share/man /usr/share/info -type l ! -name copyright -delete
find /usr/share/locale -type f ! -name locale.alias -delete
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/*.log /var/log/apt
