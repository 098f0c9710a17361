// Package sshhost implements a [shellbox.Host] on any machine with an sshd. It is for machines on
// which boxd cannot run. The user's login shell, which may be any shell, starts the programs
// ([Host.Start]). If the server limits the sessions of a connection, the Host makes more
// connections.
//
// All methods of a Host may be called from several goroutines.
package sshhost
