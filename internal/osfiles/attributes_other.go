//go:build !linux

package osfiles

import (
	"errors"
	"fmt"
	"runtime"
)

// Attributes implements hostapi.Attributer.
func (Client) Attributes(string) (map[string][]byte, error) { return nil, errNoAttributes }

// AttributesOf implements hostapi.Attributer.
func (Client) AttributesOf([]string) ([]map[string][]byte, error) { return nil, errNoAttributes }

// SetAttributes implements hostapi.Attributer.
func (Client) SetAttributes(string, map[string][]byte) error { return errNoAttributes }

var errNoAttributes = fmt.Errorf("%w: extended attributes of files on %s", errors.ErrUnsupported,
	runtime.GOOS)

func copyAttributes(from, to string) {}
