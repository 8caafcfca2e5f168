// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
)

// programID identifies the running program, with its schemas and Go rules.
var programID = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program: %w", err)
	}
	if id := buildID(path); id != "" {
		return id, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("checking the program: %w", err)
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano()), nil
})

// buildID returns the Go linker's digest of a program, or "" if there is none or the file is not
// ELF.
func buildID(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".note.go.buildid")
	if section == nil || section.Size > 4096 {
		return ""
	}
	data, err := section.Data()
	if err != nil || len(data) < 16 {
		return ""
	}
	return hex.EncodeToString(data)
}
