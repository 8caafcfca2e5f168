// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// secretChecksums report whether the values of a Secret are those that we wrote. Inventory digests
// omit them, because a digest of a short password can be guessed; these sums use a key that never
// leaves the process.
type secretChecksums struct {
	once sync.Once
	key  [32]byte

	mu    sync.Mutex
	known map[*Cluster]map[objectKey]string
}

func (s *secretChecksums) ownedChecksum(o *unstructured.Unstructured, manager string) string {
	owned := ownedFields(o, manager)
	data, _ := o.Object["data"].(map[string]any)
	values := map[string]any{}
	for k, v := range data {
		if owned.Has(fieldpath.MakePathOrDie("data", k)) {
			values[k] = v
		}
	}
	return s.checksum(values)
}

// isLastWritten reports whether the declared values of a Secret are those that we wrote last.
func (s *secretChecksums) isLastWritten(c *Cluster, declared *unstructured.Unstructured) bool {
	s.mu.Lock()
	have, known := s.known[c][objectKeyOf(RefOf(declared))]
	s.mu.Unlock()
	data, _ := declared.Object["data"].(map[string]any)
	values := make(map[string]any, len(data))
	for k, v := range data {
		values[k] = canonicalBase64(v)
	}
	return known && s.checksum(values) == have
}

// canonicalBase64 returns a value of a Secret as a server encodes it: base64 may be declared in
// several lines.
func canonicalBase64(v any) any {
	text, _ := v.(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return v
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func (s *secretChecksums) checksum(values map[string]any) string {
	s.once.Do(func() { _, _ = rand.Read(s.key[:]) }) // never fails: it ends the process instead
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(text)
	return string(mac.Sum(nil))
}

// record records the expected sum of a Secret.
func (s *secretChecksums) record(c *Cluster, o *unstructured.Unstructured, manager string) {
	if groupKindOf(o) != secretKind {
		return
	}
	sum := s.ownedChecksum(o, manager)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[*Cluster]map[objectKey]string{}
	}
	if s.known[c] == nil {
		s.known[c] = map[objectKey]string{}
	}
	s.known[c][objectKeyOf(RefOf(o))] = sum
}

// hasExpectedValues reports whether a Secret has its expected values; known is false if they were
// not recorded.
func (s *secretChecksums) hasExpectedValues(c *Cluster, o *unstructured.Unstructured, manager string) (same, known bool) {
	s.mu.Lock()
	want, known := s.known[c][objectKeyOf(RefOf(o))]
	s.mu.Unlock()
	return known && s.ownedChecksum(o, manager) == want, known
}

func (s *secretChecksums) forget(c *Cluster, k objectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known[c], k)
}

func (s *secretChecksums) forgetAll(c *Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, c)
}
