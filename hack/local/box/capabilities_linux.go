package box

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// keepCapabilities drops all capabilities of this thread, and of what it executes, but those of the
// set. Those that stay are ambient, so that a program that is not run by uid 0 has them, too.
func keepCapabilities(keep capabilitySet) error {
	held, err := permitted()
	if err != nil {
		return err
	}
	for capability := range 64 {
		if keep.has(capability) {
			continue
		}
		// EINVAL: the kernel knows no more capabilities.
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

func permitted() (capabilitySet, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading capabilities: %w", err)
	}
	return capabilitySet(data[0].Permitted) | capabilitySet(data[1].Permitted)<<32, nil
}

// needsUserNamespace says whether this process must make a user namespace to be allowed to make the
// other ones.
func needsUserNamespace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0
}
