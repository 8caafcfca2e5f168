// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// CheckSupport returns nil if boxes can be created here, or the reason why not. It tries it once.
func CheckSupport() error { return checkSupportOnce() }

var checkSupportOnce = sync.OnceValue(func() error {
	root, err := os.MkdirTemp("", "pergola-box-")
	if err != nil {
		return fmt.Errorf("trying to create a box: %w", err)
	}
	defer os.Remove(root)
	process, err := start(childRequest{DryRun: true, Spec: Spec{Root: root, Args: []string{childName}}})
	switch {
	case err == nil:
		process.Wait()
		return nil
	case errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("this kernel is too old, Linux 5.12 is needed: %w", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the limits user.max_*_namespaces of this machine allow no more namespaces: %w", err)
	case isUserNamespaceNeeded() && isPermissionError(err):
		return fmt.Errorf("user namespaces are forbidden on this machine: %w", err)
	case isPermissionError(err):
		return fmt.Errorf("namespaces are forbidden on this machine: %w", err)
	default:
		return fmt.Errorf("boxes are not possible on this machine: %w", err)
	}
})

// isPermissionError reports whether the error is about permissions.
func isPermissionError(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}
