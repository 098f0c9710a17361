// Package sshhost is a [shellbox.Host] on any machine with an sshd, for machines on which boxd
// cannot run. The user's login shell, whichever it is, starts the programs ([Host.Start]). If the
// server limits the sessions of a connection, the Host makes more connections.
//
// All methods of a Host may be called from several goroutines.
package sshhost
