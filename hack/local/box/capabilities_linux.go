// SPDX-License-Identifier: Apache-2.0

package box

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitCapabilities drops all capabilities of this thread, and of its command, except the set keep.
// The remaining capabilities are ambient, so that commands of a uid other than 0 have them, too.
func limitCapabilities(keep capabilitySet) error {
	held, err := permittedCapabilities()
	if err != nil {
		return err
	}
	for capability := range 64 {
		if keep.has(capability) {
			continue
		}
		// EINVAL: the kernel has no more capabilities.
		if bound, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(capability), 0, 0, 0); err != nil || bound == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	keep &= held
	low, high := uint32(keep), uint32(keep>>32)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: low, Permitted: low, Inheritable: low},
		{Effective: high, Permitted: high, Inheritable: high},
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	for capability := range 64 {
		if !keep.has(capability) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(capability), 0, 0); err != nil {
			return fmt.Errorf("keeping capability %d: %w", capability, err)
		}
	}
	return nil
}

func permittedCapabilities() (capabilitySet, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading capabilities: %w", err)
	}
	return capabilitySet(data[0].Permitted) | capabilitySet(data[1].Permitted)<<32, nil
}

// isUserNamespaceNeeded reports whether this process needs a user namespace to create the others.
func isUserNamespaceNeeded() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0
}
