// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// countingProxy is a proxy of an API server: it counts requests and records when objects are
// applied. Clients need no credentials.
type countingProxy struct {
	*httptest.Server
	info *request.RequestInfoFactory

	mu     sync.Mutex
	counts map[string]int
	// the resource or object to wait for: "shoots", or "deployments/NAME"
	awaitedTarget string
	applied       chan time.Time // gets the time of its next apply request
}

func newCountingProxy(config *rest.Config) (*countingProxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	d := &countingProxy{counts: map[string]int{}, info: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.recordRequest(r)
		proxy.ServeHTTP(w, r)
	}))
	d.EnableHTTP2 = true // as API servers have it
	d.Config.ErrorLog = proxy.ErrorLog
	d.StartTLS()
	return d, nil
}

// healthEndpoints are the paths of health checks.
var healthEndpoints = []string{"/healthz", "/livez", "/readyz"}

// recordRequest counts a request by verb and resource, as RBAC names them.
func (d *countingProxy) recordRequest(r *http.Request) {
	at := time.Now()
	key := "discovery"
	info, err := d.info.NewRequestInfo(r)
	if slices.Contains(healthEndpoints, r.URL.Path) {
		key = "probe health"
	} else if err == nil && info.IsResourceRequest {
		verb, resource := info.Verb, info.Resource
		if r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
			verb = "apply"
		}
		if info.Subresource != "" {
			resource += "/" + info.Subresource
		}
		key = verb + " " + resource
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[key]++
	if d.applied != nil && (key == "apply "+d.awaitedTarget || info != nil && key == "apply "+info.Resource && info.Resource+"/"+info.Name == d.awaitedTarget) {
		d.applied <- at
		d.applied = nil
	}
}

// nextApply returns the time of the next apply request for a resource ("shoots"), or for one object
// ("deployments/NAME").
func (d *countingProxy) nextApply(awaited string) <-chan time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	applied := make(chan time.Time, 1)
	d.awaitedTarget, d.applied = awaited, applied
	return applied
}

func (d *countingProxy) snapshot() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}

// kubeconfig returns a kubeconfig for clients of the proxy.
func (d *countingProxy) kubeconfig() ([]byte, error) {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw})
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"bench": {Server: d.URL, CertificateAuthorityData: authority}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"bench": {}},
		Contexts:  map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}}, CurrentContext: "bench",
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig for the operator: %w", err)
	}
	return data, nil
}
