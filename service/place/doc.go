// Package place is for those who write a place for the boxes of package service: a [Place] is what
// a service needs of an engine, a cluster or a cloud.
//
// Package service/containers has a Place on a Docker engine, and service/pods one on a Kubernetes
// cluster. Package service/place/placetest tests any Place.
//
// A service stores nothing itself. So a Place keeps with each box, where other processes find it:
// its ID, the ID of its spec, and a [Note]. The order of a start is Create, Note, and for a box of
// a pool Name. A box that has its ID and its Note is whole. A box without a Note is being started.
// The process that starts it may have been killed: see Record.Orphan.
package place
