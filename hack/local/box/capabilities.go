// SPDX-License-Identifier: Apache-2.0

package box

import (
	"fmt"
	"slices"
	"strings"
)

// capabilityNames are the names in capabilities(7); the index is the number.
var capabilityNames = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE",
}

// capabilitySet has bit n set for capability n.
type capabilitySet uint64

func (s capabilitySet) has(capability int) bool { return s&(1<<capability) != 0 }

func parseCapabilities(names []string) (capabilitySet, error) {
	var set capabilitySet
	for _, name := range names {
		plain := strings.TrimPrefix(strings.ToUpper(name), "CAP_")
		if plain == "ALL" {
			return ^capabilitySet(0), nil
		}
		number := slices.Index(capabilityNames, plain)
		if number < 0 {
			return 0, fmt.Errorf("capability %q does not exist", name)
		}
		set |= 1 << number
	}
	return set, nil
}
