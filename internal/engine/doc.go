// Package engine is what a Docker engine does for boxes: images and their pulling, containers that boxd is the init of, the volumes that boxd lies
// in, images that are kept for boxes to come, and the removal of what is left of all that. It knows what the engine knows, and speaks the API's
// types; what users set is package sshbox's.
package engine
