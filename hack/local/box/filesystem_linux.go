// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a mount in the box. Its files of the machine are open before the root changes.
type mount struct {
	target string
	attach func(target string) error
}

// setUpBox sets up this process, in its new namespaces, with the root and the rest of the spec.
func setUpBox(spec Spec) error {
	if err := joinNetwork(spec.NetNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	mounts, err := specMounts(spec)
	if err != nil {
		return err
	}
	if err := changeRoot(spec.Root); err != nil {
		return err
	}
	for _, one := range mounts {
		if err := one.attach(one.target); err != nil {
			return err
		}
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return fmt.Errorf("setting hostname %q: %w", spec.Hostname, err)
		}
	}
	if spec.Dir != "" {
		if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
			return fmt.Errorf("creating the working directory: %w", err)
		}
	}
	if spec.ReadOnlyRoot {
		if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("making the root read-only: %w", err)
		}
	}
	return nil
}

func joinNetwork(path string) error {
	if path == "" {
		return nil
	}
	namespace, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("joining network namespace %s: %w", path, err)
	}
	defer unix.Close(namespace)
	if err := unix.Setns(namespace, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("joining network namespace %s: %w", path, err)
	}
	return nil
}

// specMounts returns all mounts of a box in mounting order.
func specMounts(spec Spec) ([]mount, error) {
	mounts, err := systemMounts()
	if err != nil {
		return nil, err
	}
	var own []mount
	for _, bind := range spec.Binds {
		one, err := bind.openMount()
		if err != nil {
			return nil, err
		}
		own = append(own, one)
	}
	for _, folder := range spec.Tmpfs {
		own = append(own, mount{filepath.Clean(folder), func(target string) error {
			return mountTmpfs(target, "mode=1777", unix.MS_NOSUID|unix.MS_NODEV)
		}})
	}
	slices.SortStableFunc(own, func(a, b mount) int {
		return strings.Count(a.target, "/") - strings.Count(b.target, "/")
	})
	return append(mounts, own...), nil
}

// changeRoot makes a new tmpfs on the folder the root and detaches everything else.
func changeRoot(folder string) error {
	if there, err := os.ReadDir(folder); err != nil {
		return fmt.Errorf("reading the folder of the root: %w", err)
	} else if len(there) > 0 {
		return fmt.Errorf("the folder of the root, %s, is not empty", folder)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	// The old /proc must still be visible: in a user namespace the kernel requires it.
	proc := filepath.Join(folder, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		return fmt.Errorf("creating /proc: %w", err)
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := os.Chdir(folder); err != nil {
		return fmt.Errorf("changing to the root: %w", err)
	}
	// The old root is stacked on the new one, then unmounted.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("changing to the root: %w", err)
	}
	return nil
}

// openMount copies the mounts at the source; the copy does not depend on any root.
func (b Bind) openMount() (mount, error) {
	tree, folder, err := openTree(b.Source)
	if err != nil {
		return mount{}, fmt.Errorf("%s: %w", b, err)
	}
	if b.ReadOnly {
		attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attributes); err != nil {
			return mount{}, fmt.Errorf("%s: making it read-only: %w", b, err)
		}
	}
	return mount{filepath.Clean(b.Target), func(target string) error {
		if err := mountTree(tree, folder, target); err != nil {
			return fmt.Errorf("%s: %w", b, err)
		}
		return nil
	}}, nil
}

func openTree(source string) (tree int, folder bool, err error) {
	tree, err = unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return 0, false, err
	}
	var status unix.Stat_t
	if err := unix.Fstat(tree, &status); err != nil {
		return 0, false, err
	}
	return tree, status.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// mountTree mounts a tree on a path that is missing or the same kind of file.
func mountTree(tree int, folder bool, target string) error {
	defer unix.Close(tree)
	if err := makeTarget(target, folder); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

func makeTarget(target string, folder bool) error {
	if there, err := os.Stat(target); err == nil {
		switch {
		case folder && !there.IsDir():
			return errors.New("a folder cannot be mounted on a file")
		case !folder && there.IsDir():
			return errors.New("a file cannot be mounted on a folder")
		}
		return nil
	}
	if folder {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func mountTmpfs(target, options string, flags uintptr) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", target, err)
	}
	if err := unix.Mount("tmpfs", target, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", target, err)
	}
	return nil
}
