//go:build !linux

package inspect

import "errors"

func tree([]int) (string, error)           { return "", errors.ErrUnsupported }
func alive([]int) (string, error)          { return "", errors.ErrUnsupported }
func marked(string) (string, error)        { return "", errors.ErrUnsupported }
func modes(uint64) (string, error)         { return "", errors.ErrUnsupported }
func sane(uint64) (string, error)          { return "", errors.ErrUnsupported }
func uptime() (string, error)              { return "", errors.ErrUnsupported }
func send([]string, []int) (string, error) { return "", errors.ErrUnsupported }
