// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

const demoFolder = "../../landscapes/local"

// secretsLandscape is a landscape with the encrypted Secrets of the seed, and more.
func secretsLandscape(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	secrets, err := os.ReadFile(filepath.Join(demoFolder, "seeds", "secrets.yaml"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: locked}\n",
		"secrets.yaml":   string(secrets),
		"more.yaml":      more,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// newSecretsConverger returns a converger on the API server, with or without a key.
func newSecretsConverger(t *testing.T, dir string, withKey bool) *Converger {
	t.Helper()
	options := landscapes.Options{}
	if withKey {
		key, err := os.ReadFile(filepath.Join(demoFolder, ".sops", "age.key"))
		require.NoError(t, err)
		options.AgeIdentities, err = landscapes.ParseAgeIdentities(string(key))
		require.NoError(t, err)
	}
	l, violations, err := landscapes.Load(t.Context(), dir, options)
	require.NoError(t, err)
	require.Empty(t, violations)
	c, err := New(l, Options{Catalogue: components.FS, Connections: Connections{Configs: map[string]*rest.Config{Runtime: server.config, Virtual: server.config}}, Clock: clocktesting.NewFakeClock(time.Now()), Permits: Permits{Gate: permit.DefaultGate()}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestPlanWithoutAKey checks that a plan without a key deletes no Secret that was applied with it,
// even if nothing else is declared. It still deletes other undeclared objects.
func TestPlanWithoutAKey(t *testing.T) {
	needsServer(t)
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: locked, namespace: garden}\n"
	deleteLandscapesAtEnd(t)
	lease := newLeaseTest(t)
	lease.writeAs("", time.Now()) // creates the namespace
	with := newSecretsConverger(t, secretsLandscape(t, config), true)
	require.NoError(t, with.applyDeclarations(testContext(t), Virtual, splitByCluster(with.landscape)[Virtual]))
	secrets := testClient(t).CoreV1().Secrets("garden")
	before, err := secrets.Get(testContext(t), "seed-dns-local", metav1.GetOptions{})
	require.NoError(t, err)

	for name, test := range map[string]struct {
		more    string
		deleted []string
	}{
		"same": {config, nil},
		"less": {"", []string{"ConfigMap garden/locked"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSecretsConverger(t, secretsLandscape(t, test.more), false)
			p, err := c.Plan(testContext(t))
			require.NoError(t, err)
			var deleted []string
			for _, item := range p.Items {
				assert.Equal(t, change.Delete, item.Action, "%+v", item)
				deleted = append(deleted, item.Object.String())
			}
			assert.Equal(t, test.deleted, deleted)
			assert.Equal(t, []string{
				"Secret garden/seed-dns-local is encrypted, and no key opens it: left out of the comparison",
				"Secret garden/backup-local is encrypted, and no key opens it: left out of the comparison",
			}, p.Notes)

			leases := testClient(t).CoordinationV1().Leases(leasesNamespace)
			before, err := leases.Get(testContext(t), operatorLease, metav1.GetOptions{})
			require.NoError(t, client.IgnoreNotFound(err))
			report, err := c.Apply(testContext(t))
			require.ErrorContains(t, err, "nothing was applied, because there is no key for encrypted Secrets: Secret garden/seed-dns-local (secrets.yaml:2), Secret garden/backup-local (secrets.yaml:26): set SOPS_AGE_KEY_FILE")
			assert.Zero(t, report.Changed)
			after, err := leases.Get(testContext(t), operatorLease, metav1.GetOptions{})
			require.NoError(t, client.IgnoreNotFound(err))
			assert.Equal(t, before, after, "not even a lease was taken")
		})
	}
	after, err := secrets.Get(testContext(t), "seed-dns-local", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestNotesOfAPlan(t *testing.T) {
	c := newUnreachableDemo(t)
	p, err := c.Plan(testContext(t))
	require.Error(t, err)
	require.Len(t, p.Notes, 5)
	assert.Equal(t, p.Notes[:4], NotesWithoutProblems(p), "the note that repeats the problems is left out")
	assert.Contains(t, p.Notes[0], "Secret garden/garden-dns-local is encrypted, and no key opens it")
	for _, item := range p.Items {
		if item.Object.Name != "local" { // not encrypted
			assert.NotEqual(t, "Secret", item.Object.Kind, "%s", item.Object)
		}
	}
}

// newUnreachableDemo is the demonstration landscape without a key, on clusters that do not answer.
func newUnreachableDemo(t *testing.T) *Converger {
	t.Helper()
	l, _, err := landscapes.Load(t.Context(), demoFolder, landscapes.Options{})
	require.NoError(t, err)
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	c, err := New(l, Options{Catalogue: components.FS, Connections: Connections{Configs: map[string]*rest.Config{Runtime: config, Virtual: config, "local": config}}, Clock: clocktesting.NewFakeClock(noon)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestManyUndecryptableSecrets(t *testing.T) {
	require.NoError(t, undecryptableError(nil, nil))
	var all []undecryptableSecret
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		all = append(all, undecryptableSecret{apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name}, name + ".yaml:1", []string{"age1to", "age1two"}})
	}
	require.ErrorContains(t, undecryptableError(all, nil), "Secret garden/e (e.yaml:1), and 2 more: set SOPS_AGE_KEY_FILE")
	require.ErrorContains(t, undecryptableError(all, []string{"age1own"}),
		"nothing was applied, because the given age key age1own does not open Secrets that are encrypted for age1to, age1two: Secret garden/a (a.yaml:1), ")
	require.ErrorContains(t, undecryptableError(all, []string{"age1own", "age1old"}), "because none of the given age keys (age1own, age1old) opens Secrets")
}

// TestWrongKey checks that a wrong key is not reported as a missing one.
func TestWrongKey(t *testing.T) {
	other, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	l, _, err := landscapes.Load(t.Context(), demoFolder, landscapes.Options{AgeIdentities: []age.Identity{other}})
	require.NoError(t, err)
	err = CheckDecryptable(l)
	require.ErrorContains(t, err, "the given age key "+other.Recipient().String()+" does not open Secrets that are encrypted for age1")
	assert.NotContains(t, err.Error(), "there is no key")
}
