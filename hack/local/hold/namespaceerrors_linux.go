// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// namespaceSysctls are sysctls that can forbid namespaces: a forbidding and an allowing value.
var namespaceSysctls = []struct {
	name, bad, good string
	// users means that the setting does not apply to root.
	users bool
}{
	{"kernel.unprivileged_userns_clone", "0", "1", true},
	// This setting allows creating namespaces, but no operation in them.
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0", true},
	{"user.max_user_namespaces", "0", "10000", false},
	{"user.max_net_namespaces", "0", "10000", false},
	{"user.max_pid_namespaces", "0", "10000", false},
	{"user.max_mnt_namespaces", "0", "10000", false},
}

// explainNamespaceError explains why namespaces cannot be created, from the failure and the
// sysctls. value returns a setting, or "" if it does not exist.
func explainNamespaceError(reason string, value func(name string) string) error {
	says := func(errors ...syscall.Errno) bool {
		return slices.ContainsFunc(errors, func(e syscall.Errno) bool { return strings.Contains(reason, e.Error()) })
	}
	for _, s := range namespaceSysctls {
		if says(syscall.EPERM, syscall.EACCES, syscall.ENOSPC) && value(s.name) == s.bad && (!s.users || os.Geteuid() != 0) {
			return fmt.Errorf("namespaces are forbidden on this machine (sysctl %s is %s; its administrator allows them by sysctl -w %[1]s=%[3]s): %[4]s", s.name, s.bad, s.good, reason)
		}
	}
	switch {
	case says(syscall.EPERM, syscall.EACCES):
		return fmt.Errorf("namespaces are forbidden on this machine: %s", reason)
	case says(syscall.ENOSPC): // not from a disk
		return fmt.Errorf("the limits of this machine allow no more namespaces (sysctl user.max_user_namespaces and similar): %s", reason)
	}
	return fmt.Errorf("namespaces are not possible on this machine: %s", reason)
}

// readSysctl returns a setting of this machine.
func readSysctl(name string) string {
	value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}
