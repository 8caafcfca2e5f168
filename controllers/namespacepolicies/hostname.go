// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// lookupInterval is the interval in which the API server's name is resolved (upstream's); changes
// cannot be watched.
const lookupInterval = 30 * time.Second

// apiServerHost returns the name and port by which pods reach the API server, or "" if it has an
// address instead of a name. Gardener's Shoots use a name.
func apiServerHost(config *rest.Config, env func(string) string) (host string, port uint16) {
	number := func(text string) uint16 {
		if n, err := strconv.ParseUint(text, 10, 16); err == nil {
			return uint16(n)
		}
		return 443
	}
	text := config.Host
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	if u, err := url.Parse(text); err == nil && isHostname(u.Hostname()) {
		return u.Hostname(), number(u.Port())
	}
	if name := env("KUBERNETES_SERVICE_HOST"); isHostname(name) {
		return name, number(env("KUBERNETES_SERVICE_PORT"))
	}
	return "", 0
}

func isHostname(host string) bool {
	_, err := netip.ParseAddr(host)
	return host != "" && err != nil
}

// pollHostAddresses resolves the API server's name until ctx ends.
func (c *Controller) pollHostAddresses(ctx context.Context) {
	host, port := apiServerHost(c.config, os.Getenv)
	if host == "" {
		c.setAPIServerAddresses(nil)
		return
	}
	tick := c.options.Clock.NewTicker(lookupInterval)
	defer tick.Stop()
	for {
		found, err := c.options.LookupHost(ctx, host)
		if err != nil && ctx.Err() == nil {
			c.options.Log.Info("cannot look up the API server; its last known addresses stay in use", "host", host, "error", err)
		}
		if at := addressesWithPort(found, port); len(at) > 0 {
			c.setAPIServerAddresses(at)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}

// addressesWithPort returns the valid addresses of a list, sorted and with a port.
func addressesWithPort(found []string, port uint16) []netip.AddrPort {
	var out []netip.AddrPort
	for _, text := range found {
		if address, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.AddrPortFrom(address.Unmap().WithZone(""), port))
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// resolveHost uses the resolver of the machine.
func resolveHost(ctx context.Context, host string) ([]string, error) {
	return net.DefaultResolver.LookupHost(ctx, host)
}
