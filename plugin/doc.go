// Package plugin installs the programs and settings that a Go program needs in a sandbox. A
// [Plugin] is a directory with a setup.sh. [Install] runs it in any sandbox, once.
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
// setup.sh runs as the box's user, in a session of its own, in the plugin's directory in the box.
// It has these variables:
//
//	SANDSHELL_BOX              the kind of box, such as LocalBox or DockerSSHBox
//	SANDSHELL_ROOT             "yes" if setup.sh runs as root and may change the system; "no" if
//	                           not, and always on the user's own machine
//	SANDSHELL_PACKAGE_MANAGER  the first of apt-get, apk, dnf, yum, zypper and pacman that the box
//	                           has; empty if it has none
//	SANDSHELL_PLUGIN           the plugin's directory; setup.sh may write there, and it stays
//	SANDSHELL_ENV              a file to which setup.sh appends variables: a line NAME=value, or
//	                           for a value of several lines NAME<<END, the lines, and a line END
//	SANDSHELL_PATH             a file to which setup.sh appends directories, one a line, that go
//	                           to the front of PATH
//	SANDSHELL_CACHE            a directory for downloads that outlives the box; empty if there is
//	                           none
//	DEBIAN_FRONTEND            noninteractive
//	APT_CONFIG                 for root in a box with apt-get: a configuration that lets several
//	                           setups run apt-get at the same time
//
// When setup.sh has ended with status 0, the variables of the two files and of Plugin.Env are set:
// in the main session, in every session, job and Run that is started later, and in a shell that
// replaces one that has ended. Other sessions that are open do not get them. The setups of plugins
// that require this one do.
//
// Nobody answers a setup.sh that asks for input. It fails at once, and the error has the question.
// Processes that setup.sh leaves behind are killed.
//
// # Where plugins are
//
// A plugin's directory is .sandshell/plugins/NAME below the user's home directory in the box. If
// that cannot be written, it is below /var/tmp, /tmp or the directory in which sessions start. A
// sandbox that is [Confined] chooses the directory itself. LocalBox, which is the user's own
// machine, has a temporary one, which Close removes.
package plugin
