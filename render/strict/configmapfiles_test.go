// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFilesOfConfigMaps(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"YAML":               {`{a.yaml: "a:\n  b: 1\n"}`, ""},
		"two documents":      {`{a.yml: "a: 1\n---\nb: 2\n"}`, ""},
		"nothing":            {`{a.yaml: "", b.json: ""}`, ""},
		"indented wrongly":   {`{a.yaml: "a:\n  b: 1\n c: 2\n"}`, "data[a.yaml]: is not YAML: line 2: "},
		"a tab":              {`{a.yml: "a:\n\tb: 1\n"}`, "data[a.yml]: is not YAML: line 2: "},
		"in the second one":  {`{a.yaml: "a: 1\n---\nb: [\n"}`, "data[a.yaml]: is not YAML: "},
		"JSON":               {`{a.json: '{"a": [1]}'}`, ""},
		"a comma too many":   {`{a.json: '{"a": [1,]}'}`, "data[a.json]: is not JSON: "},
		"two values of JSON": {`{a.json: '{} {}'}`, "data[a.json]: is not JSON: "},
		"a template":         {`{a.yaml: "{{ range .x }}\n- {{ . }}\n{{ end }}"}`, ""},
		"some other file":    {`{a.conf: "a: [", b: "{"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: " + tt.data + "}"
			got := checkText(t, kubernetesKind(t, object), object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}

func TestScrapeTimes(t *testing.T) {
	for name, tt := range map[string]struct{ kind, spec, want string }{
		"shorter":            {"Prometheus", "{scrapeInterval: 1m, scrapeTimeout: 50s}", ""},
		"as long":            {"Prometheus", "{scrapeInterval: 50s, scrapeTimeout: 50s}", ""},
		"longer":             {"Prometheus", "{scrapeInterval: 30s, scrapeTimeout: 50s}", "spec.scrapeTimeout: 50s is longer than scrapeInterval, which is 30s"},
		"one of them":        {"Prometheus", "{scrapeTimeout: 50s}", ""},
		"of an endpoint":     {"ServiceMonitor", "{endpoints: [{port: a}, {port: b, interval: 10s, scrapeTimeout: 1m}]}", "spec.endpoints[1].scrapeTimeout: 1m is longer than interval, which is 10s"},
		"of pods":            {"PodMonitor", "{podMetricsEndpoints: [{port: b, interval: 10s, scrapeTimeout: 11s}]}", "spec.podMetricsEndpoints[0].scrapeTimeout: 11s is longer"},
		"of an endpoint, ok": {"ServiceMonitor", "{endpoints: [{port: b, interval: 1m, scrapeTimeout: 10s}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkText(t, openKind("monitoring.coreos.com", "v1", tt.kind), "{apiVersion: monitoring.coreos.com/v1, kind: "+tt.kind+", metadata: {name: a, namespace: b}, spec: "+tt.spec+"}", 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}
