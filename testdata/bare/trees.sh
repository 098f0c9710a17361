#!/usr/bin/env bash
# trees.sh DEB DIR: makes DIR/busybox and DIR/shell, the files of the two images, from Debian's
# busybox-static.
#
# Debian's ash runs busybox's applets whether or not there are files of those names, so a link that
# is not made is not enough: the binary's table of names loses what an image is not to have. Names
# keep their length, and their order, because they are looked up in it.
set -euo pipefail
umask 022
dir=$2
mkdir -p "$dir/unpacked" "$dir"/{busybox,shell}/bin "$dir/busybox/tmp"
chmod 1777 "$dir/busybox/tmp"
dpkg-deb --extract "$1" "$dir/unpacked"
busybox=$(find "$dir/unpacked" -path '*/bin/busybox')

# applets FILE CODE: the table of FILE, in which CODE has changed each name ($_).
applets() {
	perl -0777 -we '
		my ($code, $b) = (shift, scalar <STDIN>);
		# From "[" on, sorted, each with a NUL behind it.
		$b =~ /\0(\[\0\[\[\0(?:[a-z0-9_.-]+\0)+)/ or die "there is no table of applets\n";
		my ($at, $table) = ($-[1], $1);
		$table =~ /\0ash\0.*\0sh\0.*\0tar\0/ or die "the table of applets is not as expected\n";
		my $new = join "", map {
			my $n = length; eval $code; die $@ if $@; length == $n or die; "$_\0"
		} split /\0/, $table;
		substr($b, $at, length $table) = $new;
		print $b' "$2" <"$busybox" >"$1"
	chmod 755 "$1"
}

applets "$dir/busybox/bin/busybox" '$_ = "taq" if $_ eq "tar"'
"$busybox" --list | while read -r name; do
	[ "$name" = tar ] || [ "$name" = busybox ] || ln -s busybox "$dir/busybox/bin/$name"
done

# All but ash and sh become what nobody types: before ash, between the two, behind sh.
applets "$dir/shell/bin/sh" '
	$_ = ($_ lt "ash" ? "\1" : $_ lt "sh" ? "b" : "\x7f") x length unless $_ eq "ash" || $_ eq "sh"'
