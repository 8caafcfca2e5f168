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

// Format and Version are those of the archives that are written here. A version that is not known
// is refused.
const (
	Format  = "pergola-backup"
	Version = 1
)

// Archive is a backup in memory.
type Archive struct {
	Manifest Manifest
	// Entries in the order of the manifest.
	Entries []*Entry
}

// Manifest says what is in an archive, without values.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// ID tells one backup from another.
	ID        string    `json:"id"`
	Created   time.Time `json:"created"`
	Program   string    `json:"program"`
	Catalogue string    `json:"catalogue"`
	Landscape Landscape `json:"landscape"`
	Garden    Garden    `json:"garden"`
	Clusters  []Cluster `json:"clusters"`
	Entries   []Item    `json:"entries"`
}

// Landscape is that which was backed up.
type Landscape struct {
	Name string `json:"name"`
	// Revision is the commit of the files; empty where they are in no Git. Dirty says that they had
	// changes that were not committed.
	Revision string `json:"revision,omitempty"`
	Dirty    bool   `json:"dirty,omitempty"`
}

// Garden is what is in no Git of it.
type Garden struct {
	Name string `json:"name"`
	// UID is by which things outside of the cluster are named after it.
	UID             string `json:"uid"`
	ClusterIdentity string `json:"clusterIdentity,omitempty"`
	// Credentials are status.credentials.
	Credentials map[string]any `json:"credentials,omitempty"`
}

// Cluster is one of those that were backed up.
type Cluster struct {
	Name string `json:"name"`
	// UID is that of its namespace kube-system, which no other cluster has.
	UID string `json:"uid"`
	// Same names the cluster that this one is, too: a runtime cluster may be a seed.
	Same string `json:"same,omitempty"`
}

// Item names an entry.
type Item struct {
	Cluster   string `json:"cluster"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Sort is why it is here.
	Sort Sort `json:"sort"`
	// SHA256 is that of the entry as it is in the archive. There is something random in each, so
	// that it tells nothing of values.
	SHA256 string `json:"sha256"`
	// Certificate is what is public of one.
	Certificate *Certificate `json:"certificate,omitempty"`
}

func (i Item) String() string {
	return fmt.Sprintf("%s %s/%s on cluster %s", i.Kind, i.Namespace, i.Name, i.Cluster)
}

// path in the archive.
func (i Item) path() string {
	return fmt.Sprintf("%s/%s/%s/%s.json", i.Cluster, i.Namespace, i.Kind, i.Name)
}

// Certificate is the first one of a Secret.
type Certificate struct {
	Subject string `json:"subject"`
	// SHA256 is its fingerprint.
	SHA256   string    `json:"sha256"`
	NotAfter time.Time `json:"notAfter"`
}

// Sort of an entry.
type Sort string

// The sorts of entries.
const (
	// Generated ones were made by the secrets manager.
	Generated Sort = "generated"
	// Referenced ones are referred to by the Garden or a Landscape, and Git does not declare them.
	Referenced Sort = "referenced"
	// Recorded ones say which operations were executed.
	Recorded Sort = "recorded"
)

// Entry is an object of the archive.
type Entry struct {
	Item   Item
	object object
}

// String names it; an Entry holds values, so no verb may print it.
func (e *Entry) String() string { return e.Item.String() }

// Format implements fmt.Formatter with String, for every verb.
func (e *Entry) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(e.String())) }

// object is what of a Secret or ConfigMap is restored.
type object struct {
	Salt        string            `json:"salt"`
	Type        string            `json:"type,omitempty"`
	Immutable   bool              `json:"immutable,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Created is when the object was made: of secrets of one name the secrets manager takes the
	// newest for the current one.
	Created time.Time         `json:"created"`
	Data    map[string][]byte `json:"data,omitempty"`
	// Binary is what a ConfigMap has as binaryData.
	Binary map[string][]byte `json:"binary,omitempty"`
}

// encode gives the entry as it is in the archive, with its checksum.
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

// decode reads an entry whose checksum was compared.
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

// Of gives the entries of one cluster.
func (a *Archive) Of(cluster string) []*Entry {
	var out []*Entry
	for _, e := range a.Entries {
		if e.Item.Cluster == cluster {
			out = append(out, e)
		}
	}
	return out
}

// Cluster finds one by its name; nil where the archive has none.
func (m *Manifest) Cluster(name string) *Cluster {
	for i := range m.Clusters {
		if m.Clusters[i].Name == name {
			return &m.Clusters[i]
		}
	}
	return nil
}
