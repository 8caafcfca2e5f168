// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "errors"

// execWithDNS fails on this system.
func execWithDNS(string, []string) error {
	return errors.New("namespaces are a feature of Linux")
}
