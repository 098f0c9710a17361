// Package sshlogin brings boxd to a machine that can be logged in to, and starts it there. A [Box]
// is a boxd that runs on such a machine. It is a [client.Place].
//
// A [Login] has to execute commands. An sshd needs neither sftp nor forwarding. Each version of
// boxd is copied once, over a shell's standard input, to a file whose name has the program's
// checksum. A login starts boxd, and boxd outlives that login: it has a process session of its own,
// and its socket is in a directory of mode 0700. Each connection to boxd is a login of its own,
// which executes "boxd join".
package sshlogin
