// SPDX-License-Identifier: Apache-2.0

package render

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// serviceName identifies a Service in the cluster.
type serviceName struct{ namespace, name string }

// serversOf returns the servers in kubeconfigs of a Secret or ConfigMap, such as the webhooks of an
// API server. Without a webhook, the API server denies the requests that it would allow.
func serversOf(o *unstructured.Unstructured) []serviceName {
	if kind := o.GetKind(); o.GroupVersionKind().Group != "" || kind != "Secret" && kind != "ConfigMap" {
		return nil
	}
	content, err := contentOf(o)
	if err != nil {
		return nil // rendering reports it
	}
	var out []serviceName
	for _, key := range sortedKeys(content) {
		if !strings.Contains(string(content[key]), "server:") { // most hold something else
			continue
		}
		var config clientcmdv1.Config
		if yaml.Unmarshal(content[key], &config) != nil || config.Kind != "Config" {
			continue
		}
		for _, c := range config.Clusters {
			if server := serviceAt(c.Cluster.Server, o.GetNamespace()); server.name != "" {
				out = append(out, server)
			}
		}
	}
	return out
}

// serviceAt is the Service that an address names, seen from a namespace: NAME, NAME.NAMESPACE,
// NAME.NAMESPACE.svc and so on. Names on the internet look the same, but match no Service.
func serviceAt(address, from string) serviceName {
	at, err := url.Parse(address)
	if err != nil {
		return serviceName{}
	}
	labels := strings.Split(at.Hostname(), ".")
	if len(labels) == 1 {
		return serviceName{from, labels[0]}
	}
	return serviceName{labels[1], labels[0]}
}
