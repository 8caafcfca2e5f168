package panics

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Error is a panic that was caught.
type Error struct {
	// Value of the panic. An error that is none of the Go runtime is what it is; all else is a
	// fault of Pergola.
	Value any
	// Stack of the goroutine that it happened in. It has no values of variables in it.
	Stack []byte
}

// Error implements error.
func (e *Error) Error() string {
	if cause := e.Unwrap(); cause != nil {
		return cause.Error()
	}
	return fmt.Sprintf("a fault of Pergola (%v): please report it with the stack that is logged", e.Value)
}

// Unwrap gives the error that somebody who could not return one panicked with.
func (e *Error) Unwrap() error {
	err, ok := e.Value.(error)
	if _, fault := errors.AsType[runtime.Error](err); !ok || fault {
		return nil
	}
	return err
}

// Catch makes an error of a panic. It has to be deferred itself. What the function would have given
// otherwise is lost.
func Catch(err *error) {
	if p := recover(); p != nil {
		*err = caught(p)
	}
}

// Safe gives a function that returns its panic as an error.
func Safe(f func() error) func() error {
	return func() (err error) {
		defer Catch(&err)
		return f()
	}
}

// caught keeps the stack of the goroutine in which it happened first.
func caught(p any) *Error {
	if e, ok := p.(*Error); ok {
		return e
	}
	return &Error{Value: p, Stack: debug.Stack()}
}
