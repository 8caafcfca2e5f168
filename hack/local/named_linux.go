package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// resolvers of the machine, which programs ask instead of DNS servers: they know no names of
// clusters, and are hidden.
var resolvers = []string{"/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/var/run/nscd/socket"}

// becomeNamed goes on as a command for which names are those that a DNS server knows, by an
// /etc/resolv.conf of its own. It is for the inside of namespaces.
func becomeNamed(server string, command []string) error {
	// What is changed for one thread is what the command has: it replaces all of them.
	runtime.LockOSThread()
	if err := nameBy(server); err != nil {
		fmt.Fprintf(os.Stderr, "names of Services do not resolve: %s\n", err)
	}
	err := unix.Exec(command[0], command, os.Environ())
	return fmt.Errorf("starting %s: %w", command[0], err)
}

// nameBy makes a DNS server the one of this thread.
func nameBy(server string) (err error) {
	file, err := os.CreateTemp("", "pergola-resolv")
	if err != nil {
		return fmt.Errorf("making a file for /etc/resolv.conf: %w", err)
	}
	// Mounted, it needs no name.
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if _, err := fmt.Fprintf(file, "nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n", server); err != nil {
		return fmt.Errorf("writing /etc/resolv.conf: %w", err)
	}
	if err := file.Chmod(0o644); err != nil {
		return fmt.Errorf("writing /etc/resolv.conf: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(file.Name(), "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting /etc/resolv.conf: %w", err)
	}
	for _, socket := range resolvers {
		if _, err := os.Stat(socket); err != nil {
			continue
		}
		if err := unix.Mount(os.DevNull, socket, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", socket, err)
		}
	}
	return nil
}
