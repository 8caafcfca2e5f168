// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// childVariable makes the test binary print only the digest of one render.
const childVariable = "PERGOLA_TEST_PRINT_RENDER"

// digestPrefix marks the digest in the output of the test binary.
const digestPrefix = "render digest "

// slowComponents components take most of the time; only TestSameBytesEverywhere renders them.
var slowComponents = []string{"shoot/operatingsystemconfig", "garden/crds", "seed/crds"}

// renderDigest renders the demonstration landscape and returns one digest of all bytes, files and
// ManagedResources.
func renderDigest(t *testing.T, skip ...string) string {
	t.Helper()
	l := localLandscape(t)
	options, err := LandscapeOptions(components.FS, l)
	require.NoError(t, err)
	inputs, err := Owners(l)
	require.NoError(t, err)
	sum := sha256.New()
	for _, in := range inputs {
		if len(skip) > 0 {
			options.OnlyComponents = componentsWithout(t, in.Owner.Kind, skip)
		}
		result, err := Render(in, options)
		require.NoError(t, err)
		files, err := BundleFiles(result.Bundles, func(b Bundle) string { return b.Cluster })
		require.NoError(t, err)
		for _, name := range sortedKeys(files) {
			sum.Write([]byte(name + "\x00"))
			sum.Write(files[name])
		}
		for _, b := range result.Bundles {
			mr, secret, err := ManagedResource(b)
			require.NoError(t, err)
			for _, part := range []any{mr.Object, secret.Object} {
				text, err := MarshalYAML(part)
				require.NoError(t, err)
				sum.Write(text)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// componentsWithout lists the components of a kind except some.
func componentsWithout(t *testing.T, kind string, skip []string) []string {
	t.Helper()
	dirs, err := componentDirs(components.FS, kind)
	require.NoError(t, err)
	var out []string
	for _, d := range dirs {
		if !slices.Contains(skip, d) {
			out = append(out, d)
		}
	}
	return out
}

// TestRenderIsDeterministic: the random order of Go maps does not affect the output.
func TestRenderIsDeterministic(t *testing.T) {
	first := renderDigest(t, slowComponents...)
	times := 20
	if testing.Short() {
		times = 4
	}
	for range times - 1 {
		require.Equal(t, first, renderDigest(t, slowComponents...))
	}
}

// TestSameBytesEverywhere renders in other processes: with other time zones, languages and numbers
// of threads, and without the rest of the environment.
func TestSameBytesEverywhere(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		t.Log(digestPrefix + renderDigest(t))
		return
	}
	binary, err := os.Executable()
	require.NoError(t, err)
	want := renderDigest(t)
	for _, env := range [][]string{
		{"TZ=Pacific/Kiritimati", "GOMAXPROCS=1", "LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8"},
		{"TZ=America/St_Johns", "GOMAXPROCS=7", "HOME=/nonexistent", "TMPDIR=" + t.TempDir(), "HELM_DEBUG=true", "KUBECONFIG=/nonexistent"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestSameBytesEverywhere$", "-test.v")
		cmd.Env = append(env, childVariable+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		_, digest, found := strings.Cut(string(out), digestPrefix)
		require.True(t, found, string(out))
		assert.Equal(t, want, digest[:len(want)], "with %v", env)
	}
}
