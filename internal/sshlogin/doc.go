// Package sshlogin brings boxd to a machine that one can log in to with SSH, and starts it there. A
// [Box] is a boxd that runs on one: a [boxclient.Place].
//
// The sshd has to execute commands, as for any login; neither sftp nor forwarding is needed. The
// program comes once per version, over a shell's standard input, under a name that holds its
// checksum. It is started by a login, and outlives that: it has a process session of its own, and
// its socket lies in a directory of mode 0700. Each connection to it is a login of its own, which
// executes "boxd join".
package sshlogin
