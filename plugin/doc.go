// Package plugin makes sure that a sandbox has what a program assumes of it: a [Plugin] is a directory with a setup.sh, and
// [Install] runs that in any sandbox, once.
//
//	//go:embed all:lint
//	var files embed.FS
//
//	dir, err := fs.Sub(files, "lint")
//	if err != nil {
//		return err
//	}
//	lint := plugin.Plugin{Name: "lint", Files: dir, Check: "golangci-lint --version"}
//	if err := box.InitPlugins(ctx, lint); err != nil { // or plugin.Install(ctx, box, lint)
//		return err // failed to install lint on DockerSSHBox: E: Unable to locate package golangci-lint
//	}
//	box.Execute(ctx, "golangci-lint run")
//
// # What setup.sh gets
//
// It runs in the plugin's directory in the box, in a shell of its own on a terminal, as the box's user, with these variables:
//
//	SANDSHELL_BOX              the kind of box: LocalBox, SSHBox, DockerSSHBox
//	SANDSHELL_ROOT             yes if it may change the system: it is root, and the box is not the user's own machine; else no
//	SANDSHELL_PACKAGE_MANAGER  apt-get, apk, dnf, yum, zypper or pacman, whichever is there first; or nothing
//	SANDSHELL_PLUGIN           the plugin's directory, where it may write; it stays
//	SANDSHELL_ENV              a file for lines NAME=value; NAME<<END, lines and END for a value of several lines
//	SANDSHELL_PATH             a file for directories, one a line, that are to come first in PATH
//	SANDSHELL_CACHE            a directory for downloads that outlives the box, or nothing
//	DEBIAN_FRONTEND            noninteractive
//	APT_CONFIG                 where it may call apt-get: so that setups side by side do not get into each other's way
//
// What it appends to the two files is in force, once it has ended with 0, in the main session, in each session, job and Run that is started
// later, and in a shell that takes the place of one that ended; sessions that were open before do not get it. So is Plugin.Env. Plugins that
// require it have it in their setups.
//
// Nobody answers a setup.sh that asks for input: it fails at once, with the question in the error. What it leaves running is ended.
//
// # Where it is
//
// In .sandshell/plugins in the user's home directory in the box; where that cannot be written, in the like directory of /var/tmp, /tmp or the
// directory in which sessions start. A sandbox that implements [Confined] names another: LocalBox does, one that goes with the box, since it
// is on the user's own machine.
package plugin
