// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDryRunStore: a manager on Trial computes the same names as on the real store, and writes
// nothing.
func TestDryRunStore(t *testing.T) {
	w := newStoreFixture(t)
	ca := Config{Name: "ca", Kind: KindCA, CommonName: "ca"}
	server := Config{Name: "server", Kind: KindCertificate, CertType: CertServer, SigningCA: "ca", CommonName: "server", DNSNames: []string{"a"}}
	first, err := w.manager().GenerateAll(t.Context(), []Config{ca, server})
	require.NoError(t, err)
	writes, names := w.store.writes(), w.store.names()

	same, err := New(NewDryRunStore(w.store), "garden", "gardener-operator", w.clock, WithKeyBits(testBits)).GenerateAll(t.Context(), []Config{ca, server})
	require.NoError(t, err)
	assert.Equal(t, first, same)

	server.DNSNames = []string{"a", "b"}
	tried, err := New(NewDryRunStore(w.store), "garden", "gardener-operator", w.clock, WithKeyBits(testBits)).GenerateAll(t.Context(), []Config{ca, server})
	require.NoError(t, err)
	assert.Equal(t, first[0].Secret, tried[0].Secret)
	assert.NotEqual(t, first[1].Secret, tried[1].Secret)
	assert.Equal(t, writes, w.store.writes())
	assert.Equal(t, names, w.store.names())

	made, err := w.manager().GenerateAll(t.Context(), []Config{ca, server})
	require.NoError(t, err)
	assert.Equal(t, made[1].Secret, tried[1].Secret)
}
