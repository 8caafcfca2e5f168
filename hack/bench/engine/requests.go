// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// requestCounts are requests by verb and resource, such as "apply configmaps" or "patch
// managedresources/status".
type requestCounts map[string]int

// subtract returns the requests since an earlier count.
func (c requestCounts) subtract(earlier requestCounts) requestCounts {
	out := requestCounts{}
	for key, n := range c {
		if d := n - earlier[key]; d > 0 {
			out[key] = d
		}
	}
	return out
}

func (c requestCounts) total() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

// internalResources returns resources that the API server reads and writes for itself: addresses of
// Services, its lease, flow control, default roles, namespaces.
func internalResources() sets.Set[string] {
	return sets.New("leases", "ipaddresses", "servicecidrs", "flowschemas", "prioritylevelconfigurations", "apiservices",
		"endpoints", "endpointslices", "priorityclasses", "clusterroles", "clusterrolebindings", "rolebindings", "namespaces",
		"customresourcedefinitions", "resourcequotas", "limitranges", "nodes", "storageclasses", "volumeattachments",
		"runtimeclasses", "persistentvolumes", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "deviceclasses", "resourceclaims", "resourceslices")
}

// requestKey identifies a request; the result is "" for requests that are not counted: watches,
// which the API server counts when they end, and internal resources.
func requestKey(verb, resource, subresource string) string {
	if resource == "" || verb == "watch" || internalResources().Has(resource) {
		return ""
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return verb + " " + resource
}

// countRequests returns all requests that the API server has answered, without the benchmark's own.
func (s *server) countRequests(ctx context.Context) (requestCounts, error) {
	mine := s.ownRequests.snapshot()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.config.Host, "/")+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of the API server: %s", resp.Status)
	}
	all := requestCounts{}
	err = eachMetric(resp.Body, "apiserver_request_total{", func(_ string, labels map[string]string, value float64) {
		if k := requestKey(verbOf(labels["verb"]), labels["resource"], labels["subresource"]); k != "" {
			all[k] += int(value)
		}
	})
	if err != nil {
		return nil, err
	}
	return all.subtract(mine), nil
}

// verbOf returns the RBAC verb for the verb of the metric.
func verbOf(metric string) string {
	switch metric {
	case "POST":
		return "create"
	case "PUT":
		return "update"
	}
	return strings.ToLower(metric)
}

// eachMetric visits the samples with a prefix in the text format of Prometheus.
func eachMetric(text io.Reader, prefix string, visit func(name string, labels map[string]string, value float64)) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		name, inside, _ := strings.Cut(line[:end], "{")
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return fmt.Errorf("metric %s: %w", name, err)
		}
		labels := map[string]string{}
		for pair := range strings.SplitSeq(strings.TrimSuffix(inside, "}"), `",`) {
			if k, v, ok := strings.Cut(pair, `="`); ok {
				labels[k] = strings.TrimSuffix(v, `"`)
			}
		}
		visit(name, labels, value)
	}
	return lines.Err()
}

// requestCounter counts the requests of a client by the same keys.
type requestCounter struct {
	info   *request.RequestInfoFactory
	mu     sync.Mutex
	counts requestCounts
}

func newCounter() *requestCounter {
	return &requestCounter{counts: requestCounts{}, info: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}}
}

func (c *requestCounter) snapshot() requestCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		info, err := c.info.NewRequestInfo(req)
		if err != nil {
			return nil, err
		}
		verb := info.Verb
		if req.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
			verb = "apply"
		}
		if k := requestKey(verb, info.Resource, info.Subresource); k != "" && info.IsResourceRequest {
			c.mu.Lock()
			c.counts[k]++
			c.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
