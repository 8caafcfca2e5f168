// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// resolverSockets are sockets of the machine that programs ask instead of DNS servers. They do not
// know the names of clusters, so execWithDNS hides them.
var resolverSockets = []string{"/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/var/run/nscd/socket"}

// execWithDNS executes a command whose /etc/resolv.conf names the given DNS server. It must run
// inside the namespaces.
func execWithDNS(server string, command []string) error {
	// Changes to this thread apply to the command, which replaces all threads.
	runtime.LockOSThread()
	if err := mountResolvConf(server); err != nil {
		fmt.Fprintf(os.Stderr, "names of Services do not resolve: %s\n", err)
	}
	err := unix.Exec(command[0], command, os.Environ())
	return fmt.Errorf("starting %s: %w", command[0], err)
}

// mountResolvConf makes server the DNS server of this thread.
func mountResolvConf(server string) (err error) {
	file, err := os.CreateTemp("", "pergola-resolv")
	if err != nil {
		return fmt.Errorf("creating a file for /etc/resolv.conf: %w", err)
	}
	// A mounted file needs no name.
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if _, err := fmt.Fprintf(file, "nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n", server); err != nil {
		return fmt.Errorf("writing /etc/resolv.conf: %w", err)
	}
	if err := file.Chmod(0o644); err != nil {
		return fmt.Errorf("writing /etc/resolv.conf: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("creating a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(file.Name(), "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting /etc/resolv.conf: %w", err)
	}
	for _, socket := range resolverSockets {
		if _, err := os.Stat(socket); err != nil {
			continue
		}
		if err := unix.Mount(os.DevNull, socket, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", socket, err)
		}
	}
	return nil
}
