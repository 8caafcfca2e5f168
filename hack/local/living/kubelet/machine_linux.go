// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	cadvisorapiv2 "github.com/google/cadvisor/info/v2"
)

// Machine is the size that a node reports.
type Machine struct {
	CPUs   int
	Memory uint64 // in bytes
}

// staticCadvisor replaces cadvisor, which needs cgroups.
type staticCadvisor struct {
	Machine
	folder string
}

func (*staticCadvisor) Start() error { return nil }

// MachineInfo is called once, and again every five minutes.
func (m *staticCadvisor) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("reading the id of the boot: %w", err)
	}
	id := strings.TrimSpace(string(boot))
	return &cadvisorapi.MachineInfo{Timestamp: time.Now(), NumCores: m.CPUs, MemoryCapacity: m.Memory, MachineID: id, SystemUUID: id, BootID: id}, nil
}

// VersionInfo returns the reported operating system of the node.
func (*staticCadvisor) VersionInfo() (*cadvisorapi.VersionInfo, error) {
	var name syscall.Utsname
	if err := syscall.Uname(&name); err != nil {
		return nil, fmt.Errorf("asking for the version of the kernel: %w", err)
	}
	release := make([]byte, 0, len(name.Release))
	for _, c := range name.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	return &cadvisorapi.VersionInfo{KernelVersion: string(release), ContainerOsVersion: "executables of this machine"}, nil
}

// ContainerInfoV2 has only the whole machine: the kubelet gets containers from the runtime.
func (m *staticCadvisor) ContainerInfoV2(name string, _ cadvisorapiv2.RequestOptions) (map[string]cadvisorapiv2.ContainerInfo, error) {
	if name != "/" {
		return map[string]cadvisorapiv2.ContainerInfo{}, nil
	}
	var used syscall.Sysinfo_t
	if err := syscall.Sysinfo(&used); err != nil {
		return nil, fmt.Errorf("asking for the memory of the machine: %w", err)
	}
	busy := (used.Totalram - used.Freeram - used.Bufferram) * uint64(used.Unit)
	return map[string]cadvisorapiv2.ContainerInfo{name: {
		Spec:  cadvisorapiv2.ContainerSpec{HasMemory: true, Memory: cadvisorapiv2.MemorySpec{Limit: m.Memory}},
		Stats: []*cadvisorapiv2.ContainerStats{{Timestamp: time.Now(), Memory: &cadvisorapi.MemoryStats{Usage: busy, WorkingSet: busy}}},
	}}, nil
}

// GetRequestedContainersInfo is for old clients.
func (*staticCadvisor) GetRequestedContainersInfo(string, cadvisorapiv2.RequestOptions) (map[string]*cadvisorapi.ContainerInfo, error) {
	return map[string]*cadvisorapi.ContainerInfo{}, nil
}

// fileSystemInfo returns usage and capacity of a folder's file system.
func fileSystemInfo(folder string) (cadvisorapiv2.FsInfo, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return cadvisorapiv2.FsInfo{}, fmt.Errorf("asking for the free space of %s: %w", folder, err)
	}
	size := uint64(s.Bsize)
	return cadvisorapiv2.FsInfo{
		Timestamp: time.Now(), Mountpoint: folder, Capacity: s.Blocks * size, Available: s.Bavail * size, Usage: (s.Blocks - s.Bfree) * size,
		Inodes: &s.Files, InodesFree: &s.Ffree,
	}, nil
}

func (m *staticCadvisor) ImagesFsInfo(context.Context) (cadvisorapiv2.FsInfo, error) {
	return fileSystemInfo(m.folder)
}
func (m *staticCadvisor) RootFsInfo() (cadvisorapiv2.FsInfo, error) { return fileSystemInfo(m.folder) }
func (m *staticCadvisor) ContainerFsInfo(context.Context) (cadvisorapiv2.FsInfo, error) {
	return fileSystemInfo(m.folder)
}
func (*staticCadvisor) GetDirFsInfo(path string) (cadvisorapiv2.FsInfo, error) {
	return fileSystemInfo(path)
}
