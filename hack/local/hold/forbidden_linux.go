package hold

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// settings of machines that forbid namespaces: the value that does, and one that allows them.
var settings = []struct {
	name, bad, good string
	// users says that it is about others than root.
	users bool
}{
	{"kernel.unprivileged_userns_clone", "0", "1", true},
	// With this one they can be made, and nothing can be done in them.
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0", true},
	{"user.max_user_namespaces", "0", "10000", false},
	{"user.max_net_namespaces", "0", "10000", false},
	{"user.max_pid_namespaces", "0", "10000", false},
	{"user.max_mnt_namespaces", "0", "10000", false},
}

// forbidden says why namespaces cannot be had, as far as a failure and the settings of the machine
// tell. value is that of a setting; empty if there is none.
func forbidden(reason string, value func(name string) string) error {
	says := func(errors ...syscall.Errno) bool {
		return slices.ContainsFunc(errors, func(e syscall.Errno) bool { return strings.Contains(reason, e.Error()) })
	}
	for _, s := range settings {
		if says(syscall.EPERM, syscall.EACCES, syscall.ENOSPC) && value(s.name) == s.bad && (!s.users || os.Geteuid() != 0) {
			return fmt.Errorf("namespaces are forbidden on this machine (sysctl %s is %s; its administrator allows them by sysctl -w %[1]s=%[3]s): %[4]s", s.name, s.bad, s.good, reason)
		}
	}
	switch {
	case says(syscall.EPERM, syscall.EACCES):
		return fmt.Errorf("namespaces are forbidden on this machine: %s", reason)
	case says(syscall.ENOSPC): // not that of a disk
		return fmt.Errorf("there are as many namespaces on this machine as the limits allow (sysctl user.max_user_namespaces and the like): %s", reason)
	}
	return fmt.Errorf("namespaces cannot be had on this machine: %s", reason)
}

// sysctl is a setting of this machine.
func sysctl(name string) string {
	value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}
