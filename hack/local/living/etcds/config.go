// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Folders in the Pods, as with etcd-druid.
const (
	dataFolder   = "/var/etcd/data"
	configFolder = "/var/etcd/config"
	tlsFolder    = "/var/etcd/ssl"
)

// configuration is etcd's configuration file.
type configuration struct {
	Name                    string    `json:"name"`
	DataDir                 string    `json:"data-dir"`
	Metrics                 string    `json:"metrics"`
	SnapshotCount           int64     `json:"snapshot-count"`
	QuotaBackendBytes       int64     `json:"quota-backend-bytes"`
	AutoCompactionMode      string    `json:"auto-compaction-mode"`
	AutoCompactionRetention string    `json:"auto-compaction-retention"`
	InitialClusterToken     string    `json:"initial-cluster-token"`
	InitialClusterState     string    `json:"initial-cluster-state"`
	InitialCluster          string    `json:"initial-cluster"`
	ListenPeerURLs          string    `json:"listen-peer-urls"`
	ListenClientURLs        string    `json:"listen-client-urls"`
	ListenMetricsURLs       string    `json:"listen-metrics-urls"`
	AdvertisePeerURLs       string    `json:"initial-advertise-peer-urls"`
	AdvertiseClientURLs     string    `json:"advertise-client-urls"`
	ClientSecurity          *security `json:"client-transport-security,omitempty"`
	PeerSecurity            *security `json:"peer-transport-security,omitempty"`
	NoSync                  bool      `json:"unsafe-no-fsync,omitempty"`
	LogOutputs              []string  `json:"log-outputs"`
}

type security struct {
	CertFile       string `json:"cert-file"`
	KeyFile        string `json:"key-file"`
	TrustedCAFile  string `json:"trusted-ca-file"`
	ClientCertAuth bool   `json:"client-cert-auth"`
}

func (e *etcd) member(ordinal int32) string { return fmt.Sprintf("%s-%d", e.Name, ordinal) }

// url returns the URL of a member by its name.
func (e *etcd) url(ordinal, port int32, secured *tlsRefs) string {
	host := fmt.Sprintf("%s.%s.%s.svc", e.member(ordinal), e.peerService(), e.Namespace)
	if e.hostOf != nil {
		host = e.hostOf(ordinal)
	}
	return fmt.Sprintf("%s://%s:%d", scheme(secured), host, port)
}

func (e *etcd) peerURL(ordinal int32) string {
	return e.url(ordinal, e.Spec.Etcd.ServerPort, e.Spec.Etcd.PeerURLTLS)
}

func scheme(secured *tlsRefs) string {
	if secured == nil {
		return "http"
	}
	return "https"
}

// memberConfiguration returns the configuration of one member. The first founders members start
// together; each later member joins all members before it.
func (e *etcd) memberConfiguration(ordinal, founders int32, noSync bool) configuration {
	state, known := "new", founders
	if ordinal >= founders {
		state, known = "existing", ordinal+1
	}
	var cluster []string
	for i := range known {
		cluster = append(cluster, e.member(i)+"="+e.peerURL(i))
	}
	s := e.Spec.Etcd
	return configuration{
		Name: e.member(ordinal), DataDir: dataFolder + "/new.etcd", NoSync: noSync, LogOutputs: []string{"stdout"},
		Metrics: s.Metrics, SnapshotCount: s.SnapshotCount, QuotaBackendBytes: s.Quota.Value(),
		AutoCompactionMode: e.Spec.SharedConfig.AutoCompactionMode, AutoCompactionRetention: e.Spec.SharedConfig.AutoCompactionRetention,
		InitialClusterToken: "etcd-cluster", InitialClusterState: state, InitialCluster: strings.Join(cluster, ","),
		ListenPeerURLs:    fmt.Sprintf("%s://0.0.0.0:%d", scheme(s.PeerURLTLS), s.ServerPort),
		ListenClientURLs:  fmt.Sprintf("%s://0.0.0.0:%d", scheme(s.ClientURLTLS), s.ClientPort),
		ListenMetricsURLs: fmt.Sprintf("http://0.0.0.0:%d", s.WrapperPort),
		AdvertisePeerURLs: e.peerURL(ordinal), AdvertiseClientURLs: e.url(ordinal, s.ClientPort, s.ClientURLTLS),
		ClientSecurity: s.ClientURLTLS.security(tlsFolder+"/ca", tlsFolder+"/server"),
		PeerSecurity:   s.PeerURLTLS.security(tlsFolder+"/peer/ca", tlsFolder+"/peer/server"),
	}
}

func (t *tlsRefs) security(ca, server string) *security {
	if t == nil {
		return nil
	}
	return &security{
		CertFile: server + "/tls.crt", KeyFile: server + "/tls.key", TrustedCAFile: ca + "/" + t.caKey(), ClientCertAuth: true,
	}
}

// configFiles returns the configuration files of all members, and a checksum that changes if
// running members must restart: not if others join.
func (e *etcd) configFiles(members, founders int32, noSync bool) (files map[string]string, checksum string, err error) {
	files = map[string]string{}
	for i := range max(members, founders) {
		data, err := yaml.Marshal(e.memberConfiguration(i, founders, noSync))
		if err != nil {
			return nil, "", fmt.Errorf("writing configuration of etcd: %w", err)
		}
		files[e.member(i)+".yaml"] = string(data)
	}
	sum := sha256.Sum256([]byte(files[e.member(0)+".yaml"]))
	return files, hex.EncodeToString(sum[:]), nil
}
