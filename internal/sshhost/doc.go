// Package sshhost is a [shellbox.Host] on any machine with an sshd, where boxd cannot run: programs
// are started by the user's login shell, whichever it is ([Host.Start]), on as many connections as
// the server's limit on sessions asks for.
package sshhost
