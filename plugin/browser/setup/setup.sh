#!/bin/sh
# Makes sure that the box has a Chromium. If it installs one, it installs fonts too.
set -e

installed() {
	for p in chromium-headless-shell chrome-headless-shell headless-shell chromium \
		chromium-browser google-chrome google-chrome-stable; do
		if command -v $p >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

if installed; then
	echo "Chromium is installed"
	exit 0
fi
if [ "$SANDSHELL_ROOT" != yes ]; then
	echo "there is no Chromium, and plugins may not install packages here:" \
		"install chromium by hand, or use an image that has it"
	exit 1
fi
failed() {
	echo "$SANDSHELL_PACKAGE_MANAGER could not install chromium: check that the box has a network"
	exit 1
}
case $SANDSHELL_PACKAGE_MANAGER in
apt-get)
	apt-get -q update || failed
	chromium=chromium-headless-shell # older releases have only the full one
	apt-cache show $chromium >/dev/null 2>&1 || chromium=chromium
	apt-get -q -y install --no-install-recommends \
		$chromium fonts-liberation fonts-dejavu-core fonts-droid-fallback \
		fonts-noto-color-emoji || failed
	;;
apk) apk add --wait 600 --no-cache chromium font-dejavu || failed ;;
dnf | yum) "$SANDSHELL_PACKAGE_MANAGER" -y install chromium dejavu-sans-fonts || failed ;;
zypper) zypper --non-interactive install chromium dejavu-fonts || failed ;;
pacman) pacman -Sy --noconfirm --needed chromium ttf-dejavu || failed ;;
*)
	echo "there is no Chromium, and the box has no package manager that this script knows:" \
		"use an image that has Chromium"
	exit 1
	;;
esac
installed || {
	echo "the packages are installed, but PATH has no Chromium: check the distribution's package"
	exit 1
}
