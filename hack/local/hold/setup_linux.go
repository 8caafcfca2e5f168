// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namespaceAttributes returns the attributes of a process that becomes process 1 of new namespaces,
// in which the caller is root and no other user exists.
func namespaceAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
}

// setUpNamespaces makes the new namespaces usable, from inside.
func setUpNamespaces() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// The old /proc shows the machine's processes, not the new namespace's.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bringing the loopback device up: %w", err)
	}
	return nil
}

// checkNamespaces tries the operations that a holder and its pods need.
func checkNamespaces() error {
	if err := setUpNamespaces(); err != nil {
		return err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "try0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "try1"}); err != nil {
		return fmt.Errorf("creating a veth pair: %w", err)
	}
	return nil
}

// closeInherited closes unintended files of the parent. They would stay open as long as the holder,
// and readers of such a pipe would wait as long. Go closes its own files on exec.
func closeInherited(firstUnknown int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < firstUnknown {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
