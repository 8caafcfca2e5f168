// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Format and Version identify the archives that this package writes. Other versions are rejected.
const (
	Format  = "pergola-backup"
	Version = 1
)

// Archive is a backup in memory.
type Archive struct {
	Manifest Manifest
	// Entries are in the order of the manifest.
	Entries []*Entry
}

// Manifest describes the content of an archive without values.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// ID identifies the backup.
	ID        string    `json:"id"`
	Created   time.Time `json:"created"`
	Program   string    `json:"program"`
	Catalogue string    `json:"catalogue"`
	Landscape Landscape `json:"landscape"`
	Garden    Garden    `json:"garden"`
	Clusters  []Cluster `json:"clusters"`
	Entries   []Item    `json:"entries"`
}

// Landscape is the landscape of the backup.
type Landscape struct {
	Name string `json:"name"`
	// Revision is the commit of its files, "" outside Git. Dirty reports whether they had
	// uncommitted changes.
	Revision string `json:"revision,omitempty"`
	Dirty    bool   `json:"dirty,omitempty"`
}

// Garden has the data of the Garden that is not in Git.
type Garden struct {
	Name string `json:"name"`
	// UID is part of the names of external resources.
	UID             string `json:"uid"`
	ClusterIdentity string `json:"clusterIdentity,omitempty"`
	// Credentials are status.credentials.
	Credentials map[string]any `json:"credentials,omitempty"`
}

// Cluster is a cluster of the backup.
type Cluster struct {
	Name string `json:"name"`
	// UID is the UID of namespace kube-system, which identifies a cluster.
	UID string `json:"uid"`
	// SameAs names another entry for this cluster: a runtime cluster may be a seed.
	SameAs string `json:"same,omitempty"`
}

// Item describes an entry.
type Item struct {
	Cluster   string `json:"cluster"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Origin is why it is in the backup.
	Origin Origin `json:"sort"`
	// SHA256 is the checksum of the stored entry. Each entry is salted, so the checksum reveals
	// nothing about values.
	SHA256 string `json:"sha256"`
	// Certificate has the public data of a certificate.
	Certificate *Certificate `json:"certificate,omitempty"`
}

func (i Item) String() string {
	return fmt.Sprintf("%s %s/%s on cluster %s", i.Kind, i.Namespace, i.Name, i.Cluster)
}

// path returns the path in the archive.
func (i Item) path() string {
	return fmt.Sprintf("%s/%s/%s/%s.json", i.Cluster, i.Namespace, i.Kind, i.Name)
}

// Certificate describes the first certificate of a Secret.
type Certificate struct {
	Subject string `json:"subject"`
	// SHA256 is the fingerprint.
	SHA256   string    `json:"sha256"`
	NotAfter time.Time `json:"notAfter"`
}

// Origin is the reason for an entry.
type Origin string

const (
	// OriginGenerated entries were created by the secrets manager.
	OriginGenerated Origin = "generated"
	// OriginReferenced entries are used by the Garden or a Landscape and not declared in Git.
	OriginReferenced Origin = "referenced"
	// OriginRecorded entries list executed operations.
	OriginRecorded Origin = "recorded"
)

// Entry is an object of the archive.
type Entry struct {
	Item   Item
	object storedObject
}

// String returns its name. An Entry holds values, so no verb may print it.
func (e *Entry) String() string { return e.Item.String() }

// Format implements fmt.Formatter with String, for every verb.
func (e *Entry) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(e.String())) }

// storedObject has the restored fields of a Secret or ConfigMap.
type storedObject struct {
	Salt        string            `json:"salt"`
	Type        string            `json:"type,omitempty"`
	Immutable   bool              `json:"immutable,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Created is the creation time: the secrets manager uses the newest of several secrets of one
	// name.
	Created time.Time         `json:"created"`
	Data    map[string][]byte `json:"data,omitempty"`
	// Binary is the binaryData of a ConfigMap.
	Binary map[string][]byte `json:"binary,omitempty"`
}

// encode returns the stored form of an entry and sets its checksum.
func (e *Entry) encode() ([]byte, error) {
	if e.object.Salt == "" {
		salt := make([]byte, 16)
		if _, err := rand.Read(salt); err != nil {
			return nil, fmt.Errorf("reading random bytes: %w", err)
		}
		e.object.Salt = hex.EncodeToString(salt)
	}
	raw, err := json.Marshal(e.object)
	if err != nil {
		return nil, errors.New("encoding " + e.String() + " failed")
	}
	e.Item.SHA256 = checksum(raw)
	return raw, nil
}

// decode parses an entry after its checksum was verified.
func (e *Entry) decode(raw []byte) error {
	if err := json.Unmarshal(raw, &e.object); err != nil {
		return errors.New(e.String() + " cannot be read")
	}
	return nil
}

func checksum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func (a *Archive) EntriesOf(cluster string) []*Entry {
	var out []*Entry
	for _, e := range a.Entries {
		if e.Item.Cluster == cluster {
			out = append(out, e)
		}
	}
	return out
}

// Cluster finds a cluster by its name, or nil if the archive does not have it.
func (m *Manifest) Cluster(name string) *Cluster {
	for i := range m.Clusters {
		if m.Clusters[i].Name == name {
			return &m.Clusters[i]
		}
	}
	return nil
}
