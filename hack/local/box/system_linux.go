// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var (
	// devices are bound from the machine: a user namespace cannot create devices.
	devices = []string{"null", "zero", "full", "random", "urandom", "tty"}
	// deviceLinks are links in /dev that programs expect.
	deviceLinks = map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	}
	// protectedPaths are files of the machine that uid 0 could change without any capability.
	protectedPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// systemMounts returns the mounts that every box has.
func systemMounts() ([]mount, error) {
	mounts := []mount{{"/dev", func(target string) error {
		return mountTmpfs(target, "mode=0755,size=64k", unix.MS_NOSUID|unix.MS_NOEXEC)
	}}}
	for _, name := range devices {
		path := filepath.Join("/dev", name)
		tree, folder, err := openTree(path)
		if errors.Is(err, fs.ErrNotExist) && name == "tty" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", path, err)
		}
		mounts = append(mounts, mount{path, func(target string) error {
			if err := mountTree(tree, folder, target); err != nil {
				return fmt.Errorf("device %s: %w", target, err)
			}
			return nil
		}})
	}
	for name, to := range deviceLinks {
		mounts = append(mounts, mount{filepath.Join("/dev", name), func(target string) error {
			if err := os.Symlink(to, target); err != nil {
				return fmt.Errorf("device %s: %w", target, err)
			}
			return nil
		}})
	}
	mounts = append(mounts, mount{"/dev/shm", func(target string) error {
		return mountTmpfs(target, "mode=1777,size=64m", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
	}})
	for _, path := range protectedPaths {
		mounts = append(mounts, mount{path, remountReadOnly})
	}
	return mounts, nil
}

// remountReadOnly makes an existing path of the box read-only.
func remountReadOnly(path string) error {
	tree, folder, err := openTree(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("protecting %s: %w", path, err)
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("protecting %s: %w", path, err)
	}
	if err := mountTree(tree, folder, path); err != nil {
		return fmt.Errorf("protecting %s: %w", path, err)
	}
	return nil
}
