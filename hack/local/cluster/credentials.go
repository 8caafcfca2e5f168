// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pergola-dev/pergola/hack/local/kubeconfig"
	"github.com/pergola-dev/pergola/hack/local/pki"
	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

const adminName = "admin"

func loopbackHosts() []string { return []string{"127.0.0.1", "localhost"} }

// ensureSharedCredentials creates etcd's keys and reports whether any is new.
func (m *Manager) ensureSharedCredentials(now time.Time) (renewed bool, err error) {
	folder := &pki.Folder{Path: m.Dir.PKI(sharedName), Now: now}
	ca, err := folder.Authority("ca")
	if err != nil {
		return false, err
	}
	for _, leaf := range []pki.Leaf{
		{Name: PartEtcd, User: PartEtcd, Hosts: loopbackHosts(), ClientAuth: true},
		{Name: PartAPIServer, User: PartAPIServer},
	} {
		if err := folder.Issue(ca, leaf); err != nil {
			return false, err
		}
	}
	return len(folder.Renewed) > 0, nil
}

// ensureCredentials creates the keys and kubeconfigs of one cluster and reports whether any key is
// new.
func (m *Manager) ensureCredentials(c *statedir.Cluster, now time.Time) (renewed bool, err error) {
	folder := &pki.Folder{Path: m.Dir.PKI(c.Name), Now: now}
	ca, err := folder.Authority("ca")
	if err != nil {
		return false, err
	}
	frontProxy, err := folder.Authority("front-proxy-ca")
	if err != nil {
		return false, err
	}
	hosts := append(loopbackHosts(), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if c.Kubelets > 0 { // pods use the Service address, too
		hosts = append(hosts, c.ServiceIP(1))
	}
	for _, leaf := range append([]pki.Leaf{
		{Name: PartAPIServer, User: PartAPIServer, Hosts: hosts},
		{Name: adminName, User: "pergola-local-admin", Groups: []string{"system:masters"}},
		{Name: PartControllerManager, User: "system:kube-controller-manager"},
		{Name: PartScheduler, User: "system:kube-scheduler"},
		{Name: PartKwok, User: kwokUser},
		{Name: PartStages, User: stagesUser},
	}, livingCertificates(c)...) {
		if err := folder.Issue(ca, leaf); err != nil {
			return false, err
		}
	}
	if err := folder.Issue(frontProxy, pki.Leaf{Name: "front-proxy-client", User: "front-proxy-client"}); err != nil {
		return false, err
	}
	if err := folder.KeyPair("service-account"); err != nil {
		return false, err
	}
	if err := m.writeAuthentication(c); err != nil {
		return false, err
	}
	return len(folder.Renewed) > 0, m.writeKubeconfigs(c, folder)
}

func (m *Manager) writeKubeconfigs(c *statedir.Cluster, folder *pki.Folder) error {
	entry := kubeconfig.Entry{Name: "pergola-" + c.Name, Server: c.Server(), CA: folder.Cert("ca")}
	for _, part := range append([]string{PartControllerManager, PartScheduler, PartKwok}, livingParts(c.Kubelets)...) {
		entry.Cert, entry.Key = folder.Cert(part), folder.Key(part)
		if err := kubeconfig.Write(m.Dir.PartKubeconfig(c.Name, part), []kubeconfig.Entry{entry}); err != nil {
			return err
		}
	}
	return kubeconfig.Write(m.Dir.Kubeconfig(c.Name), []kubeconfig.Entry{m.adminEntry(c)})
}

func (m *Manager) adminEntry(c *statedir.Cluster) kubeconfig.Entry {
	folder := pki.Folder{Path: m.Dir.PKI(c.Name)}
	return kubeconfig.Entry{
		Name: "pergola-" + c.Name, Server: c.Server(),
		CA: folder.Cert("ca"), Cert: folder.Cert(adminName), Key: folder.Key(adminName), Proxy: m.proxy,
	}
}

// writeMerged writes the kubeconfig with a context for every cluster of the folder.
func (m *Manager) writeMerged(state *statedir.State) error {
	var entries []kubeconfig.Entry
	for _, c := range state.Clusters {
		entries = append(entries, m.adminEntry(c))
	}
	return kubeconfig.Write(m.Dir.MergedKubeconfig(), entries)
}

func (m *Manager) authenticationFile(c *statedir.Cluster) string {
	return filepath.Join(m.Dir.PKI(c.Name), "authentication.yaml")
}

// writeAuthentication allows anonymous requests only to the health endpoints.
func (m *Manager) writeAuthentication(c *statedir.Cluster) error {
	const config = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
    - path: /livez
    - path: /readyz
    - path: /healthz
`
	if err := os.WriteFile(m.authenticationFile(c), []byte(config), 0o600); err != nil {
		return fmt.Errorf("writing authentication configuration: %w", err)
	}
	return nil
}

// Client returns a client for a cluster, as its administrator.
func (m *Manager) Client(c *statedir.Cluster) (*restclient.Client, error) {
	entry := m.adminEntry(c)
	return restclient.New(c.Server(), restclient.Files{CA: entry.CA, Cert: entry.Cert, Key: entry.Key})
}

func (m *Manager) etcdClient(state *statedir.State) (*restclient.Client, error) {
	folder := pki.Folder{Path: m.Dir.PKI(sharedName)}
	return restclient.New(fmt.Sprintf("https://127.0.0.1:%d", state.EtcdPort), restclient.Files{
		CA: folder.Cert("ca"), Cert: folder.Cert(PartAPIServer), Key: folder.Key(PartAPIServer),
	})
}
