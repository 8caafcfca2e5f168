// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// HostPIDs maps the process ids inside to the ids that the caller sees. It omits processes in
// nested PID namespaces.
func (h *Holder) HostPIDs() (map[int]int, error) {
	namespace := func(folder string) (string, error) { return os.Readlink(filepath.Join(folder, "ns/pid")) }
	ours, err := namespace(filepath.Join("/proc", strconv.Itoa(h.pid)))
	if err != nil {
		return nil, fmt.Errorf("finding the process-id namespace of the holder (process %d): %w", h.pid, err)
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	out := map[int]int{}
	for _, folder := range folders {
		// The process may belong to another user, or end meanwhile.
		if one, err := namespace(folder); err != nil || one != ours {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(folder, "status"))
		if outside, inside, found := processIDs(string(status)); found {
			out[inside] = outside
		}
	}
	return out, nil
}

// processIDs parses, from a process's status file, its id in the reader's namespace and in its own.
func processIDs(status string) (outside, inside int, found bool) {
	for line := range strings.Lines(status) {
		list, is := strings.CutPrefix(line, "NSpid:")
		ids := strings.Fields(list)
		if !is || len(ids) == 0 {
			continue
		}
		outside, err := strconv.Atoi(ids[0])
		if err != nil {
			return 0, 0, false
		}
		inside, err := strconv.Atoi(ids[len(ids)-1])
		return outside, inside, err == nil
	}
	return 0, 0, false
}
