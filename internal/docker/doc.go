// Package docker makes boxes on a Docker engine. It pulls images, makes containers with boxd as
// their init, fills the volumes that hold boxd, keeps images for later boxes, and removes what
// ended programs have left. It uses the types of the engine's API; package sshbox has the settings
// that users see.
package docker
