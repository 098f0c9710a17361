// Package plugin makes sure that a sandbox has the programs and settings that a Go program relies
// on. A [Plugin] is a directory with a setup.sh; [Install] runs it in any sandbox, once.
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
//		return err // failed to install lint on DockerSSHBox: E: Unable to locate package lint
//	}
//	box.Execute(ctx, "golangci-lint run")
//
// # What setup.sh gets
//
// It runs in the plugin's directory in the box, in a shell of its own on a terminal, as the box's
// user, with these variables:
//
//	SANDSHELL_BOX              the kind of box: LocalBox, SSHBox, DockerSSHBox
//	SANDSHELL_ROOT             yes if it may change the system: it is root, and the box is not the
//	                           user's own machine; else no
//	SANDSHELL_PACKAGE_MANAGER  the first that is there of apt-get, apk, dnf, yum, zypper and
//	                           pacman; or nothing
//	SANDSHELL_PLUGIN           the plugin's directory, where it may write; it stays
//	SANDSHELL_ENV              a file for lines NAME=value; NAME<<END, lines and END for a value
//	                           of several lines
//	SANDSHELL_PATH             a file for directories, one a line, to put first in PATH
//	SANDSHELL_CACHE            a directory for downloads that outlives the box, or nothing
//	DEBIAN_FRONTEND            noninteractive
//	APT_CONFIG                 for root where there is apt-get: keeps setups that run side by side
//	                           out of each other's locks
//
// When setup.sh has ended with 0, the variables in the two files and those of Plugin.Env are in
// force: in the main session, in each session, job and Run that is started later, and in a shell
// that replaces one that ended. Sessions that were open before do not get them. Setups of plugins
// that require this one do.
//
// Nobody answers a setup.sh that asks for input: it fails at once, with the question in the error.
// Processes that it leaves behind are killed.
//
// # Where it is
//
// A plugin's directory is .sandshell/plugins/NAME below the user's home directory in the box; where
// that cannot be written, below /var/tmp, /tmp or the directory in which sessions start. A sandbox
// that is [Confined] names another. LocalBox, which is the user's own machine, has a temporary one
// that goes with the box.
package plugin
