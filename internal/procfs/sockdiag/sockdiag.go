// Package sockdiag finds the other ends of sockets. It asks about single sockets, because the
// kernel takes long to list all.
package sockdiag
