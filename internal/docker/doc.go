// Package docker is what a Docker engine does for boxes. It pulls images, makes containers with
// boxd as their init and volumes that hold boxd, keeps images for later boxes, and removes what is
// left of all that. It uses the types of the engine's API; the settings that users see are in
// package sshbox.
package docker
