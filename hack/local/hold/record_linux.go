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

// The record is locked by the holder as long as it lives (a POSIX lock, which belongs to the
// process: the kernel says whose it is, as an id that is right where the question is asked). Others
// use locks that belong to an open file, so that goroutines of one process keep each other out,
// too.

// errRuns says that there is another holder of the folder.
var errRuns = errors.New("another holder of this folder runs")

// writeRecord makes this process the holder of the folder until it ends; outside is its id for
// people who read the file. The file is to be kept open, and not to be opened again by this
// process: closing that would give up the lock.
func writeRecord(dir, outside string) (*os.File, error) {
	path := filepath.Join(dir, recordFile)
	// Somebody who looks for a holder right now may have the lock for a moment.
	const attempts, pause = 100, 10 * time.Millisecond
	for attempt := range attempts {
		if attempt > 0 {
			time.Sleep(pause)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening record: %w", err)
		}
		lock := wholeFile(unix.F_WRLCK)
		err = unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock)
		switch {
		case err == nil && !isElsewhere(file, path):
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
	return nil, errRuns
}

// readRecord says whether the folder has a holder, and its process id, 0 where that cannot be seen
// from the caller's namespace. What a dead one has left is removed.
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
	lock := wholeFile(unix.F_WRLCK)
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return 0, false, fmt.Errorf("reading lock of record: %w", err)
	}
	if lock.Type != unix.F_UNLCK && lock.Pid != -1 {
		return int(lock.Pid), true, nil
	}
	// No holder. One that is starting may have opened the file, but notices that it is gone.
	lock = wholeFile(unix.F_WRLCK)
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil || isElsewhere(file, path) {
		return 0, false, nil
	}
	removeFiles(dir)
	return 0, false, nil
}

// removeFiles removes socket and record, in this order: whoever may make new ones must find the
// socket gone. The caller has the lock.
func removeFiles(dir string) {
	_ = os.Remove(filepath.Join(dir, socketFile))
	_ = os.Remove(filepath.Join(dir, recordFile))
}

func wholeFile(kind int16) unix.Flock_t { return unix.Flock_t{Type: kind, Whence: io.SeekStart} }

// isElsewhere says whether the path does not lead to the open file any more.
func isElsewhere(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, current)
}
