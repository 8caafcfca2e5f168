package hold

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Outside gives the process ids by which the caller knows the processes inside, by those that they
// have there. Processes in namespaces of their own, further inside, are not among them.
func (h *Holder) Outside() (map[int]int, error) {
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
		// A process may be another user's, or end while it is looked at.
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

// processIDs reads from the status file of a process what it is called in the namespace of who
// reads, and in its own.
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
