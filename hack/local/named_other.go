//go:build !linux

package main

import "errors"

// becomeNamed fails on this system.
func becomeNamed(string, []string) error {
	return errors.New("namespaces are a feature of Linux")
}
