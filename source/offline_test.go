// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

// TestOffline: without a connection and credentials the cached revisions are available. Requests
// for others leave the cache unchanged.
func TestOffline(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	one := repo.PushFile("a.yaml", "1", "one")
	http, secure := gittest.ServeHTTP(t, root), gittest.ServeSSH(t, root)
	key, err := CredentialsOf(secure.URL, map[string][]byte{"identity": secure.Identity, "known_hosts": secure.KnownHosts})
	require.NoError(t, err)
	registry := newRegistry(t)
	artifact := registry.push(t, "latest", fluxContent, buildArchive(t, archivedFile{name: "a.yaml", content: "1"}))
	for name, test := range map[string]struct {
		options      Options
		kept, absent string
	}{
		"http": {Options{URL: http.URL + "/landscape.git"}, one, strings.Repeat("1", 40)},
		"ssh":  {Options{URL: secure.URL + "/landscape.git", Credentials: key}, one, strings.Repeat("1", 40)},
		"oci":  {Options{URL: registry.url(), Credentials: registry.credentials()}, artifact, "sha256:" + strings.Repeat("1", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			options := test.options
			options.Dir = filepath.Join(t.TempDir(), "cache")
			online := newTestRemote(t, options)
			resolveAndFetch(t, online)
			require.NoError(t, online.Close())
			http.ResetCounters()
			registry.reset(nil)

			options.Credentials, options.Offline = Credentials{}, true
			for range 2 {
				offline := newTestRemote(t, options)
				s, err := offline.At(t.Context(), test.kept)
				require.NoError(t, err)
				assert.Equal(t, "1", readSnapshotFile(t, s, "a.yaml"))
				_, err = offline.At(t.Context(), test.absent)
				requireReason(t, ReasonUnreachable, err)
				require.ErrorContains(t, err, "the cache of "+options.URL+" does not hold it")
				_, err = offline.Resolve(t.Context())
				require.Error(t, err)
				require.NoError(t, offline.Close())

				// The cache belongs to another remote, and stays.
				other := options
				other.URL += "x"
				offline = newTestRemote(t, other)
				if name != "oci" { // artifacts are independent of their registry
					_, err = offline.At(t.Context(), test.kept)
					requireReason(t, ReasonUnreachable, err)
				}
				require.NoError(t, offline.Close())
			}
			requests, _ := http.ResetCounters()
			assert.Empty(t, requests)
			assert.Empty(t, registry.reset(nil))
		})
	}
}
