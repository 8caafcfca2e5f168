// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// Entry is one context with its cluster and user, all with the same name.
type Entry struct {
	Name   string
	Server string
	// CA, Cert and Key are the PEM files whose content goes into the kubeconfig.
	CA, Cert, Key string
	// Proxy is the URL of the proxy to the server and to other addresses behind it; it is empty for
	// none.
	Proxy string
}

type namedEntry struct {
	Name    string            `yaml:"name"`
	Cluster map[string]string `yaml:"cluster,omitempty"`
	User    map[string]string `yaml:"user,omitempty"`
	Context map[string]string `yaml:"context,omitempty"`
}

type config struct {
	APIVersion     string       `yaml:"apiVersion"`
	Kind           string       `yaml:"kind"`
	CurrentContext string       `yaml:"current-context"`
	Clusters       []namedEntry `yaml:"clusters"`
	Users          []namedEntry `yaml:"users"`
	Contexts       []namedEntry `yaml:"contexts"`
}

// Write writes the entries to path, readable only by the user. The first is the current context.
func Write(path string, entries []Entry) error {
	out := config{APIVersion: "v1", Kind: "Config"}
	for i, entry := range entries {
		if i == 0 {
			out.CurrentContext = entry.Name
		}
		var data [3]string
		for i, file := range []string{entry.CA, entry.Cert, entry.Key} {
			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("reading credentials for kubeconfig %s: %w", path, err)
			}
			data[i] = base64.StdEncoding.EncodeToString(content)
		}
		cluster := map[string]string{"server": entry.Server, "certificate-authority-data": data[0]}
		if entry.Proxy != "" {
			cluster["proxy-url"] = entry.Proxy
		}
		out.Clusters = append(out.Clusters, namedEntry{Name: entry.Name, Cluster: cluster})
		out.Users = append(out.Users, namedEntry{Name: entry.Name, User: map[string]string{
			"client-certificate-data": data[1], "client-key-data": data[2],
		}})
		out.Contexts = append(out.Contexts, namedEntry{Name: entry.Name, Context: map[string]string{
			"cluster": entry.Name, "user": entry.Name,
		}})
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating folder of kubeconfig: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return nil
}
