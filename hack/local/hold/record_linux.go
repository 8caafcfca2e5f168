// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The holder locks its record while it lives. This is a POSIX lock, which belongs to a process: the
// kernel returns the holder's id as the asking process sees it. Other code uses locks of an open
// file, so that goroutines of one process exclude each other, too.

// errHolderRunning reports that the folder has another holder.
var errHolderRunning = errors.New("another holder of this folder runs")

// writeRecord makes this process the holder of the folder until it ends; outside is its id for
// readers of the file. This process must keep the file open and not open it again: closing the
// second file would release the lock.
func writeRecord(dir, outside string) (*os.File, error) {
	path := filepath.Join(dir, recordFile)
	// A process that checks for a holder may have the lock for a moment.
	const attempts, pause = 100, 10 * time.Millisecond
	for attempt := range attempts {
		if attempt > 0 {
			time.Sleep(pause)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening record: %w", err)
		}
		lock := fileLock(unix.F_WRLCK)
		err = unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock)
		switch {
		case err == nil && !isReplaced(file, path):
			if err := file.Truncate(0); err != nil {
				return nil, fmt.Errorf("writing record: %w", err)
			}
			if _, err := file.WriteString(outside + "\n"); err != nil {
				return nil, fmt.Errorf("writing record: %w", err)
			}
			return file, nil
		case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return nil, fmt.Errorf("locking record: %w", err)
		}
		_ = file.Close()
	}
	return nil, errHolderRunning
}

// readRecord reports whether the folder has a holder, and returns its process id, or 0 if the
// caller's namespace cannot see it. It removes files left by a dead holder.
func readRecord(dir string) (pid int, lives bool, err error) {
	path := filepath.Join(dir, recordFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("opening record: %w", err)
	}
	defer file.Close()
	lock := fileLock(unix.F_WRLCK)
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return 0, false, fmt.Errorf("reading lock of record: %w", err)
	}
	if lock.Type != unix.F_UNLCK && lock.Pid != -1 {
		return int(lock.Pid), true, nil
	}
	// There is no holder. A starting holder may have opened the file, but will notice its removal.
	lock = fileLock(unix.F_WRLCK)
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil || isReplaced(file, path) {
		return 0, false, nil
	}
	removeFiles(dir)
	return 0, false, nil
}

// removeFiles removes socket and record, in this order: a process that creates new files must not
// find the old socket. The caller has the lock.
func removeFiles(dir string) {
	_ = os.Remove(filepath.Join(dir, socketFile))
	_ = os.Remove(filepath.Join(dir, recordFile))
}

func fileLock(kind int16) unix.Flock_t { return unix.Flock_t{Type: kind, Whence: io.SeekStart} }

// isReplaced reports whether the path no longer leads to the open file.
func isReplaced(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, current)
}
