// SPDX-License-Identifier: Apache-2.0

package podnet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
)

// setting is a sysctl of the writing thread's network namespace, with the values to try.
type setting struct {
	name     string
	values   []string
	optional bool
}

// mainSettings are the settings of the main namespace. Pods' devices are created later and take the
// defaults. New namespaces inherit the machine's settings, so the kernel's defaults are set
// explicitly.
var mainSettings = []setting{
	{name: "net.ipv4.ip_forward", values: []string{"1"}},
	// Addresses of Services are on no device: replies come from unexpected sources.
	{name: "net.ipv4.conf.all.rp_filter", values: []string{"0"}},
	{name: "net.ipv4.conf.default.rp_filter", values: []string{"0"}},
	{name: "net.ipv4.conf.all.arp_ignore", values: []string{"0"}},
	{name: "net.ipv4.conf.default.arp_ignore", values: []string{"0"}},
	{name: "net.ipv4.conf.default.proxy_arp", values: []string{"1"}},
	{name: "net.ipv4.conf.all.send_redirects", values: []string{"0"}},
	{name: "net.ipv4.conf.default.send_redirects", values: []string{"0"}},
	{name: "net.ipv6.conf.default.disable_ipv6", values: []string{"1"}, optional: true},
}

// podSettings are the settings of a pod's namespace.
var podSettings = []setting{
	{name: "net.ipv4.conf.all.rp_filter", values: []string{"0"}},
	{name: "net.ipv4.conf.default.rp_filter", values: []string{"0"}},
	{name: "net.ipv4.conf.all.arp_ignore", values: []string{"0"}},
	{name: "net.ipv4.conf.default.arp_ignore", values: []string{"0"}},
	// As in container runtimes, any process of a pod may listen on 443, and ping.
	{name: "net.ipv4.ip_unprivileged_port_start", values: []string{"0"}},
	// All groups, or the only existing one.
	{name: "net.ipv4.ping_group_range", values: []string{"0 2147483647", "0 0"}},
	// The existing loopback device is not affected: [::1] works.
	{name: "net.ipv6.conf.default.disable_ipv6", values: []string{"1"}, optional: true},
}

func optionSettings(sysctls map[string]string) []setting {
	var all []setting
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		all = append(all, setting{name: name, values: []string{sysctls[name]}})
	}
	return all
}

func applySettings(settings []setting) error {
	for _, one := range settings {
		if err := one.apply(); err != nil {
			return err
		}
	}
	return nil
}

func (s setting) apply() error {
	if !strings.HasPrefix(s.name, "net.") || strings.Contains(s.name, "..") || strings.Contains(s.name, "/") {
		return fmt.Errorf("sysctl %s is not one of a network", s.name)
	}
	path := "/proc/sys/" + strings.ReplaceAll(s.name, ".", "/")
	var err error
	for _, value := range s.values {
		// Not WriteFile: creating a missing sysctl would fail with "permission denied".
		var file *os.File
		if file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			break
		}
		_, err = file.WriteString(value)
		err = errors.Join(err, file.Close())
		if !errors.Is(err, syscall.EINVAL) {
			break
		}
	}
	if s.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("setting sysctl %s: %w", s.name, err)
	}
	return nil
}
