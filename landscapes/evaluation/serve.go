// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// exitCodeMemory is the exit code of a worker that needs too much memory.
const exitCodeMemory = 77

// Serve is the worker's side: it evaluates packages from in and answers on out, until in ends. It
// limits its process and exits it at a limit, so nothing else may run there.
func Serve(in io.Reader, out io.Writer) error {
	var limits Limits
	if err := readMessage(in, &limits); err != nil {
		return fmt.Errorf("reading the limits of the worker: %w", err)
	}
	if err := limitProcess(limits); err != nil {
		return fmt.Errorf("limiting the worker: %w", err)
	}
	// Collecting garbage harder near the limit leaves more room for live objects.
	debug.SetMemoryLimit(limits.Memory / 8 * 7)
	go watchMemory(limits.Memory)
	if err := writeMessage(out, "ready"); err != nil {
		return err
	}
	for {
		var pkg Package
		if err := readMessage(in, &pkg); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := raiseTimeLimit(2 * limits.Timeout); err != nil {
			return fmt.Errorf("limiting the time of the worker: %w", err)
		}
		if err := writeMessage(out, evaluate(pkg)); err != nil {
			return err
		}
	}
}

// watchMemory ends the process when it exceeds its memory limit. The limit of the operating system
// is higher, and its error message is misleading.
func watchMemory(limit int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(10 * time.Millisecond) {
		metrics.Read(samples)
		if held := samples[0].Value.Uint64() - samples[1].Value.Uint64(); held > uint64(limit) {
			os.Exit(exitCodeMemory)
		}
	}
}
