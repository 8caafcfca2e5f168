// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"maps"
)

// Fact is the part of a secret that rendering may use; it contains no secret value.
type Fact struct {
	// Name is the name of the current Secret.
	Name string `json:"name"`
	// Checksum is the checksum of its data.
	Checksum string `json:"checksum"`
	// Bundle is the name of the Secret with the current and the old certificate or key.
	Bundle string `json:"bundle,omitempty"`
	// Predecessor is the name of the Secret that the current one replaced; it is empty if there is
	// none.
	Predecessor string `json:"old,omitempty"`
	// CABundle has the certificates of a CA, current and old, as base64 of PEM: the form of a
	// webhook's caBundle.
	CABundle string `json:"caBundle,omitempty"`
	// PublicKey is the public key of an SSH key pair, as base64 of its authorized_keys form.
	PublicKey string `json:"publicKey,omitempty"`
}

// Facts returns the facts of all fulfilled requests by name.
func (m *Manager) Facts() map[string]Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]Fact, len(m.entries))
	for name, e := range m.entries {
		ref := m.refOf(e)
		f := Fact{Name: ref.Secret, Checksum: ref.Checksum, Bundle: ref.Bundle}
		if e.old != nil {
			f.Predecessor = e.old.name
		}
		if e.config.Kind == KindCA {
			f.CABundle = base64.StdEncoding.EncodeToString(e.bundle.data[keyBundleCert].bytes)
		}
		if e.config.Kind == KindSSHKeypair {
			f.PublicKey = base64.StdEncoding.EncodeToString(e.current.data[keySSHPublicKey].bytes)
		}
		out[name] = f
	}
	return out
}

// Secret is the content of a generated Secret, for clients, never for renders.
type Secret struct {
	// Name is the name of the Secret.
	Name string
	// Data is the data by its keys.
	Data map[string]Value
}

// Get returns the current secret of a fulfilled request.
func (m *Manager) Get(name string) (Secret, bool) {
	return m.secretOf(name, func(e *fulfilledRequest) *secretRecord { return e.current })
}

// GetOld returns the secret that the current one replaced, if it still exists.
func (m *Manager) GetOld(name string) (Secret, bool) {
	return m.secretOf(name, func(e *fulfilledRequest) *secretRecord { return e.old })
}

// GetBundle returns the bundle of a CA or key.
func (m *Manager) GetBundle(name string) (Secret, bool) {
	return m.secretOf(name, func(e *fulfilledRequest) *secretRecord { return e.bundle })
}

func (m *Manager) secretOf(name string, pick func(*fulfilledRequest) *secretRecord) (Secret, bool) {
	e, ok := m.entryOf(name)
	if !ok || pick(e) == nil {
		return Secret{}, false
	}
	r := pick(e)
	return Secret{Name: r.name, Data: maps.Clone(r.data)}, true
}

// StaticToken returns the token of a user of a static token file.
func (m *Manager) StaticToken(name, username string) (Value, bool) {
	s, ok := m.Get(name)
	if !ok {
		return Value{}, false
	}
	return tokenOf(s.Data[keyStaticTokens], username)
}
