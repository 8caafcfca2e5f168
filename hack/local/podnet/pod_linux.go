// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// podDevice is the usual name of the device in a pod.
const podDevice = "eth0"

// Pod is the network of a pod.
type Pod struct {
	Name string
	IP   netip.Addr
	// NetNS is the path of the pod's namespace, for setns.
	NetNS string

	network *Network
}

// Add creates the network of a pod. The name is unique in the Network, and a valid file name.
func (n *Network) Add(name string, ip netip.Addr, options Options) (*Pod, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !ip.Is4() {
		return nil, fmt.Errorf("creating the network of pod %s: address %s is not one of IPv4", name, ip)
	}
	if prefix, local := n.localRangeOf(ip); local {
		return nil, fmt.Errorf("creating the network of pod %s: address %s is in the range %s, which pods cannot have", name, ip, prefix)
	}
	pod := &Pod{Name: name, IP: ip, NetNS: n.path(name), network: n}
	file, err := os.OpenFile(pod.NetNS, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the network of pod %s: %w", name, err)
	}
	_ = file.Close()
	err = runOnNewThread(func() error { return pod.setUpInside(options) })
	if err == nil {
		err = pod.addRoute()
	}
	if err != nil {
		// An error of the cleanup says less than the first one.
		_ = pod.Close()
		return nil, fmt.Errorf("creating the network of pod %s: %w", name, err)
	}
	return pod, nil
}

// setUpInside creates the namespace and its content, on a thread that ends afterwards.
func (p *Pod) setUpInside(options Options) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("creating a network namespace: %w", err)
	}
	// Without a mount the namespace would end with its last process.
	if err := unix.Mount("/proc/thread-self/ns/net", p.NetNS, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting network namespace: %w", err)
	}
	if err := applySettings(append(podSettings[:len(podSettings):len(podSettings)], optionSettings(options.Sysctls)...)); err != nil {
		return err
	}
	if _, err := upLoopback(); err != nil {
		return err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = podDevice
	if err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attributes, PeerName: p.network.device(p.Name), PeerNamespace: netlink.NsFd(p.network.mainNamespace.Fd()),
	}); err != nil {
		return fmt.Errorf("creating a veth pair: %w", err)
	}
	runtime.KeepAlive(p.network)
	device, err := netlink.LinkByName(podDevice)
	if err != nil {
		return fmt.Errorf("finding %s: %w", podDevice, err)
	}
	if err := netlink.AddrAdd(device, &netlink.Addr{IPNet: ipNet(hostPrefix(p.IP))}); err != nil {
		return fmt.Errorf("adding address %s: %w", p.IP, err)
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return fmt.Errorf("bringing %s up: %w", podDevice, err)
	}
	// The gateway is in no network of the pod, so the route must be onlink.
	if err := netlink.RouteAdd(&netlink.Route{
		LinkIndex: device.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK),
	}); err != nil {
		return fmt.Errorf("adding default route: %w", err)
	}
	return nil
}

// addRoute creates the route to the pod.
func (p *Pod) addRoute() error {
	name := p.network.device(p.Name)
	device, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	if err := netlink.LinkSetAlias(device, p.Name); err != nil {
		return fmt.Errorf("naming %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return fmt.Errorf("bringing %s up: %w", name, err)
	}
	err = netlink.RouteAdd(&netlink.Route{
		LinkIndex: device.Attrs().Index, Dst: ipNet(hostPrefix(p.IP)), Src: gateway.AsSlice(), Scope: netlink.SCOPE_LINK,
	})
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("address %s is another pod's", p.IP)
	}
	if err != nil {
		return fmt.Errorf("adding route to %s: %w", p.IP, err)
	}
	return nil
}

// Close removes the network of the pod. It disconnects processes still in its namespace.
func (p *Pod) Close() error { return p.network.Remove(p.Name) }

// Remove removes the network of a pod, also one from an earlier process or half created.
func (n *Network) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	var missing netlink.LinkNotFoundError
	device, err := netlink.LinkByName(n.device(name))
	if err == nil {
		// The route and the other end disappear with it.
		err = netlink.LinkDel(device)
	}
	if err != nil && !errors.As(err, &missing) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing the network of pod %s: %w", name, err)
	}
	// After the end of its holder the file is not a mount.
	if err := unix.Unmount(n.path(name), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting the network namespace of pod %s: %w", name, err)
	}
	if err := os.Remove(n.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the network namespace of pod %s: %w", name, err)
	}
	return nil
}

// checkName returns an error unless name is a valid file name.
func checkName(name string) error {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return fmt.Errorf("%q cannot be the name of a pod's network", name)
	}
	return nil
}
