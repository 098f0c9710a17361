// Package containers keeps the boxes of package service on a Docker engine. Each box is a container
// that package sshbox makes.
//
//	p := containers.New(containers.Config{Docker: client})
//	s, err := service.New(service.Config{Place: p, Specs: specs, Secret: secret})
//
// A service whose Config has no Place uses containers.New(containers.Config{}).
//
// # The engine is the database
//
// The container of a box is named sandshell-SERVICE-ID. The engine gives a name to one container
// only, so if two processes start the same ID, they get one box. The container of a box in a pool
// has a name without the ID; it gets the name of its box as the last step of a start.
//
// The labels of a container never change. What changes about a box is in its note: the labels of an
// empty volume that no container mounts. "docker volume ls --filter label=sandshell-service.note"
// shows the notes.
package containers
