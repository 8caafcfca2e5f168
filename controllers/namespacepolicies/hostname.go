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

// lookUp is the interval in which the API server's name is resolved (upstream's); changes cannot be
// watched.
const lookUp = 30 * time.Second

// hostOf returns the name and port by which pods reach the API server; empty if it has an address
// instead of a name. Gardener's Shoots use a name.
func hostOf(config *rest.Config, env func(string) string) (host string, port uint16) {
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
	if u, err := url.Parse(text); err == nil && isName(u.Hostname()) {
		return u.Hostname(), number(u.Port())
	}
	if name := env("KUBERNETES_SERVICE_HOST"); isName(name) {
		return name, number(env("KUBERNETES_SERVICE_PORT"))
	}
	return "", 0
}

func isName(host string) bool {
	_, err := netip.ParseAddr(host)
	return host != "" && err != nil
}

// followHost resolves the API server's name until ctx ends.
func (c *Controller) followHost(ctx context.Context) {
	host, port := hostOf(c.config, os.Getenv)
	if host == "" {
		c.setServersAt(nil)
		return
	}
	tick := c.o.Clock.NewTicker(lookUp)
	defer tick.Stop()
	for {
		found, err := c.o.LookUp(ctx, host)
		if err != nil && ctx.Err() == nil {
			c.o.Log.Info("the addresses of the API server stay as they were known", "host", host, "error", err)
		}
		if at := addressesAt(found, port); len(at) > 0 {
			c.setServersAt(at)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}

// addressesAt returns the valid addresses of a list, sorted and with a port.
func addressesAt(found []string, port uint16) []netip.AddrPort {
	var out []netip.AddrPort
	for _, text := range found {
		if address, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.AddrPortFrom(address.Unmap().WithZone(""), port))
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// lookUpHost uses the resolver of the machine.
func lookUpHost(ctx context.Context, host string) ([]string, error) {
	return net.DefaultResolver.LookupHost(ctx, host)
}
