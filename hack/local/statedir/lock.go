// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Lock excludes other processes from changing the folder; see LockFile.
func (d Dir) Lock(ctx context.Context, waiting func(holder string)) (unlock func(), err error) {
	return LockFile(ctx, d.lockFile(), waiting)
}

// LockFile takes an exclusive lock on a file. While another process holds it, LockFile calls
// waiting once with a description of the holder and retries until ctx is done. The lock ends with
// its process, however that ends.
func LockFile(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating folder of lock: %w", err)
	}
	told := false
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if file != nil {
			return func() { _ = file.Close() }, nil
		}
		holder := "another process"
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			holder = "process " + strings.TrimSpace(string(data))
		}
		if !told {
			told = true
			waiting(holder)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is in use by %s: %w", filepath.Dir(path), holder, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLock returns nil if another process holds the lock.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	// The previous holder may have removed the folder; a lock on a removed file excludes no
	// process.
	mine, errMine := file.Stat()
	current, errCurrent := os.Stat(path)
	if errMine != nil || errCurrent != nil || !os.SameFile(mine, current) {
		_ = file.Close()
		return nil, nil
	}
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return file, nil
}
