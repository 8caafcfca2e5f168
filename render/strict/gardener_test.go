// SPDX-License-Identifier: Apache-2.0

package strict

import "testing"

func TestGardener(t *testing.T) {
	object := func(api, kind, spec string) string {
		return "{apiVersion: " + api + ", kind: " + kind + ", metadata: {name: a, namespace: b}, spec: {" + spec + "}}"
	}
	record := func(spec string) string { return object("extensions.gardener.cloud/v1alpha1", "DNSRecord", spec) }
	config := func(spec string) string {
		return object("extensions.gardener.cloud/v1alpha1", "OperatingSystemConfig", spec)
	}
	checkObjects(t, map[string]objectCase{
		"addresses":            {record("recordType: A, values: [1.2.3.4]"), ""},
		"addresses of six":     {record("recordType: AAAA, values: ['::1']"), ""},
		"a name":               {record("recordType: CNAME, values: [lb.example.org]"), ""},
		"a text":               {record("recordType: TXT, values: [1.2.3.4]"), ""},
		"an unknown address":   {record("recordType: A, values: [a" + SymbolicMark + "]"), ""},
		"an address of a name": {record("recordType: CNAME, values: [1.2.3.4]"), `spec.values[0]: "1.2.3.4" is an address, but the type is CNAME; write A or AAAA`},
		"a name of an address": {record("recordType: A, values: [1.2.3.4, lb.example.org]"), `spec.values[1]: "lb.example.org" is not an IPv4 address, but the type is A`},
		"four for six":         {record("recordType: AAAA, values: [1.2.3.4]"), "is not an IPv6 address"},

		"files and units":        {config("files: [{path: /a, permissions: 420}, {path: /b, permissions: 0755}, {path: /c}], units: [{name: a.service}, {name: a@.timer}]"), ""},
		"permissions in decimal": {config("files: [{path: /a, permissions: 644}]"), "spec.files[0].permissions: 644 is 01204 in octal digits; write 0644"},
		"a unit without a type":  {config("units: [{name: kubelet}]"), `spec.units[0].name: "kubelet" is not a systemd unit: it does not end in a type such as .service`},
		"a unit of no type":      {config("units: [{name: a.conf}]"), `"a.conf" is not a systemd unit`},
	})
}
