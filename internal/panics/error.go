// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Error is a recovered panic.
type Error struct {
	// Value is the value of the panic. An error value that is not a runtime.Error is the cause;
	// anything else is a fault of Pergola.
	Value any
	// Stack is the stack of the goroutine that panicked. It contains no values of variables.
	Stack []byte
}

// Error implements error.
func (e *Error) Error() string {
	if cause := e.Unwrap(); cause != nil {
		return cause.Error()
	}
	return fmt.Sprintf("a fault of Pergola (%v): please report it with the logged stack", e.Value)
}

// Unwrap returns the error that code which cannot return errors panicked with.
func (e *Error) Unwrap() error {
	err, ok := e.Value.(error)
	if _, fault := errors.AsType[runtime.Error](err); !ok || fault {
		return nil
	}
	return err
}

// Catch turns a panic into an error. It must be deferred directly. The function's other results are
// lost.
func Catch(err *error) {
	if p := recover(); p != nil {
		*err = newError(p)
	}
}

// AsError returns a function that returns its panic as an error.
func AsError(f func() error) func() error {
	return func() (err error) {
		defer Catch(&err)
		return f()
	}
}

// newError returns the panic with the stack of the goroutine where it happened first.
func newError(p any) *Error {
	if e, ok := p.(*Error); ok {
		return e
	}
	return &Error{Value: p, Stack: debug.Stack()}
}
