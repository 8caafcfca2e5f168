// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// playedRange has the addresses of played Pods. It is multicast: connecting fails at once.
var playedRange = netip.MustParsePrefix("239.0.0.0/8")

func isPlayed(endpoint netip.AddrPort) bool { return playedRange.Contains(endpoint.Addr()) }

// selectEndpoints returns the endpoints of a Service's port: ready, or else terminating endpoints
// that still serve. If some of them are living, it omits the played endpoints.
func selectEndpoints(all []*discoveryv1.EndpointSlice, port corev1.ServicePort) []netip.AddrPort {
	var ready, ending []netip.AddrPort
	for _, slice := range all {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		number, ok := slicePort(slice, port)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			for _, text := range endpoint.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				c := endpoint.Conditions
				switch {
				case boolOrDefault(c.Ready, true):
					ready = append(ready, netip.AddrPortFrom(address, number))
				case boolOrDefault(c.Serving, false) && boolOrDefault(c.Terminating, false):
					ending = append(ending, netip.AddrPortFrom(address, number))
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	ready = slices.Compact(ready)
	if real := slices.DeleteFunc(slices.Clone(ready), isPlayed); len(real) > 0 {
		return real
	}
	return ready
}

func boolOrDefault(condition *bool, unsaid bool) bool {
	if condition == nil {
		return unsaid
	}
	return *condition
}

// slicePort returns the number of a Service's port; slices identify ports by their names.
func slicePort(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (uint16, bool) {
	for _, p := range slice.Ports {
		name, protocol := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if name == port.Name && protocol == port.Protocol && p.Port != nil {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}
