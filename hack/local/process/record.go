// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Record describes a started process.
type Record struct {
	// PID is the process id.
	PID int `json:"pid"`
	// StartID identifies the start of the process on this boot of this machine; see identify.
	StartID string `json:"born"`
	// Digest shows whether the process has the current Spec.
	Digest string `json:"digest"`
	// Command is the binary, for people who read the file.
	Command string `json:"command"`
}

// ReadRecord reads the record at path. It returns nil if the file does not exist.
func ReadRecord(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading process record: %w", err)
	}
	record := &Record{}
	if err := json.Unmarshal(data, record); err != nil {
		return nil, fmt.Errorf("reading process record %s: %w", path, err)
	}
	return record, nil
}

// write writes the record atomically.
func (r *Record) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding process record: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating folder of process record: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("writing process record: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing process record: %w", err)
	}
	return nil
}

// IsFromEarlierBoot reports whether the machine has rebooted since the start, which explains the
// end.
func (r *Record) IsFromEarlierBoot() bool { return isFromEarlierBoot(r.StartID) }

// IsAlive reports whether the recorded process still runs. A zombie, or another process with the
// same id, does not count. Nil is not alive.
func (r *Record) IsAlive() bool {
	there, dying := r.probe()
	return there && !dying
}

// probe reports whether the process exists, and whether it is ending.
func (r *Record) probe() (there, dying bool) {
	if r == nil || r.PID <= 0 {
		return false, false
	}
	born, dying, err := identify(r.PID)
	return err == nil && born == r.StartID, dying
}
