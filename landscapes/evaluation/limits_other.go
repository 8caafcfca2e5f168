//go:build !linux

package evaluation

import (
	"os/exec"
	"time"
)

// Elsewhere the parent's clock and the worker's own eye on its memory are the limits; a worker ends
// when the pipe from its parent does.
func isolate(*exec.Cmd, bool) {}

func limitProcess(Limits) error { return nil }

func allowTime(time.Duration) error { return nil }
