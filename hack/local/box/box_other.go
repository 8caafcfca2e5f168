// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package box

import (
	"context"
	"errors"
	"os"
	"runtime"
)

var errLinuxOnly = errors.New("boxes need Linux, and this is " + runtime.GOOS)

// InitChild does nothing here.
func InitChild() {}

// CheckSupport returns an error: boxes need Linux.
func CheckSupport() error { return errLinuxOnly }

// Start fails: boxes need Linux.
func Start(spec Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	return nil, errLinuxOnly
}

// Process is never created here.
type Process struct{}

// PID is never called.
func (p *Process) PID() int { return 0 }

// Done is never called.
func (p *Process) Done() <-chan struct{} { return nil }

// Wait is never called.
func (p *Process) Wait() Exit { return Exit{} }

// Signal fails: boxes need Linux.
func (p *Process) Signal(os.Signal) error { return errLinuxOnly }

// Exec fails: boxes need Linux.
func (p *Process) Exec(context.Context, Command) (Exit, error) { return Exit{}, errLinuxOnly }

// Kill is never called.
func (p *Process) Kill() {}
