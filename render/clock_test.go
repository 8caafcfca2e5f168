// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// datedProfile has every kind of date that rules read: for versions and stages, of Kubernetes and
// of machine images.
const datedProfile = `  kubernetes:
    versions:
    - {version: 1.36.0, lifecycle: [{classification: preview}, {classification: supported, startTime: "2027-02-01T00:00:00Z"}]}
    - {version: 1.35.0, classification: supported}
    - {version: 1.34.2, lifecycle: [{classification: supported, startTime: "2026-01-15T00:00:00Z"}, {classification: deprecated, startTime: "2026-06-15T00:00:00Z"}, {classification: expired, startTime: "2026-09-15T00:00:00Z"}]}
    - {version: 1.34.1, classification: deprecated, expirationDate: "2026-08-01T00:00:00Z"}
    - {version: 1.33.5, classification: deprecated, expirationDate: "2026-03-01T00:00:00Z"}
  machineImages:
  - name: local
    versions:
    - {version: 2.0.0, cri: [{name: containerd}], architectures: [amd64], lifecycle: [{classification: supported, startTime: "2026-04-01T00:00:00Z"}, {classification: expired, startTime: "2026-12-01T00:00:00Z"}]}
    - {version: 1.0.0, classification: deprecated, cri: [{name: containerd}], architectures: [amd64], expirationDate: "2026-05-01T00:00:00Z"}
`

const namespacedProfile = `apiVersion: core.gardener.cloud/v1beta1
kind: NamespacedCloudProfile
metadata: {name: longer, namespace: garden-local}
spec:
  parent: {kind: CloudProfile, name: local}
  kubernetes: {versions: [{version: 1.33.5, expirationDate: "2026-07-01T00:00:00Z"}]}
`

const lateOperation = `apiVersion: landscape.pergola.dev/v1alpha1
kind: Operation
spec: {object: Shoot garden-local/local, operation: reconcile, notAfter: "2026-10-01T00:00:00Z"}
`

// datedLandscape is landscapes/local with dates and a changed Shoot.
func datedLandscape(t *testing.T, store *resultcache.Store, change func(shoot string) string) *landscapes.Landscape {
	t.Helper()
	files := fstest.MapFS{"projects/local/longer.yaml": {Data: []byte(namespacedProfile)}, "operations/late.yaml": {Data: []byte(lateOperation)}}
	from := os.DirFS("../landscapes/local")
	require.NoError(t, fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && name == "golden" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	}))
	const profile, shoot = "gardenconfig/cloudprofile.yaml", "projects/local/shoot.yaml"
	text := string(files[profile].Data)
	begin, end := strings.Index(text, "  kubernetes:\n"), strings.Index(text, "  machineTypes:\n")
	require.True(t, begin > 0 && end > begin)
	files[profile].Data = []byte(text[:begin] + datedProfile + text[end:])
	files[shoot].Data = []byte(change(string(files[shoot].Data)))
	const garden = "garden/garden.yaml"
	files[garden].Data = []byte(replaceTexts(t, "gardenerAPIServer: {}", "gardenerAPIServer: {featureGates: {VersionClassificationLifecycle: true}}")(string(files[garden].Data)))
	l, violations, err := landscapes.LoadFS(t.Context(), files, ".", landscapes.Options{ResultCache: store})
	require.NoError(t, err)
	require.Empty(t, violations)
	return l
}

func replaceTexts(t *testing.T, pairs ...string) func(string) string {
	return func(text string) string {
		for i := 0; i < len(pairs); i += 2 {
			require.Contains(t, text, pairs[i])
		}
		return strings.NewReplacer(pairs...).Replace(text)
	}
}

// testTimes are the moments before and at every date of the landscape, in order.
func testTimes(t *testing.T) []time.Time {
	var out []time.Time
	for _, text := range regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).FindAllString(datedProfile+namespacedProfile+lateOperation, -1) {
		day, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		out = append(out, day.Add(-time.Second), day)
	}
	require.Len(t, out, 2*11)
	out = append(out, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC))
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// TestClock moves the clock over every date of a landscape. The unchanged landscape renders each
// day without errors, whatever expires, with or without its previous state. A static fault is an
// error each day. New objects are rejected from the date on.
func TestClock(t *testing.T) {
	const version, image = "    version: 1.34.1\n", "          version: 1.0.0\n"
	store := resultcache.InMemory() // results of one day must not be reused on another
	type want struct {
		change []string
		static string // rule of the error on each day
		timed  bool   // a new Shoot like this is rejected only on some days
	}
	for name, test := range map[string]want{
		"a version with a date": {change: []string{version, "    version: 1.33.5\n"}, timed: true},
		"a version with stages": {change: []string{version, "    version: 1.34.2\n"}, timed: true},
		"a version in preview":  {change: []string{version, "    version: 1.36.0\n"}},
		// its image expires
		"a version without date":           {change: []string{version, "    version: 1.35.0\n"}, timed: true},
		"a longer date in the namespace":   {change: []string{version, "    version: 1.33.5\n", "    kind: CloudProfile\n    name: local\n", "    kind: NamespacedCloudProfile\n    name: longer\n"}, timed: true},
		"an open version":                  {change: []string{version, "    version: \"1.34\"\n"}, timed: true},
		"an open version that all expires": {change: []string{version, "    version: \"1.33\"\n"}},
		"no version at all":                {change: []string{version, ""}, timed: true},
		"an image with stages":             {change: []string{image, "          version: 2.0.0\n"}, timed: true},
		"an open image":                    {change: []string{image, "          version: \"2\"\n"}, timed: true},
		"an image of any version":          {change: []string{image, ""}, timed: true},
		"an unknown version":               {change: []string{version, "    version: 1.34.7\n"}, static: "shoot/versions-offered"},
		"an unknown image":                 {change: []string{image, "          version: 3.0.0\n"}, static: "shoot/images-offered"},
		"an unknown minor version":         {change: []string{version, "    version: \"1.30\"\n"}, static: "shoot/versions-offered"},
		"a network that overlaps":          {change: []string{"nodes: 10.10.0.0/16", "nodes: 100.96.0.0/16"}, static: "shoot/networks-disjoint"},
		"an unknown region":                {change: []string{"region: local", "region: elsewhere"}, static: "shoot/region-offered"},
	} {
		t.Run(name, func(t *testing.T) {
			l := datedLandscape(t, store, replaceTexts(t, test.change...))
			empty := l.Filter(func(d *landscapes.Declaration) bool { return d.GroupVersionKind().Kind != "Shoot" })
			refused, accepted := 0, 0
			for _, now := range testTimes(t) {
				errorsOf := func(before *landscapes.Landscape) []string {
					found, err := l.ValidateAt(t.Context(), now, before, schemas.Options{})
					require.NoError(t, err)
					var rules []string
					for _, v := range found {
						if v.Severity == schemas.SeverityError {
							rules = append(rules, v.Rule)
						}
						if v.NewOnly {
							assert.Equal(t, "Shoot", v.Kind, "the one object that it is about")
						}
					}
					return rules
				}
				if test.static != "" {
					assert.Contains(t, errorsOf(nil), test.static, now)
					continue
				}
				assert.Empty(t, errorsOf(nil), "%s: nobody knows what was before", now)
				assert.Empty(t, errorsOf(l), "%s: nothing has changed", now)
				assert.Empty(t, CheckLandscape(smallCatalogue(t, nil), l, WithTime(now), WithPassedRules()), now)
				inputs, err := Owners(l, WithTime(now))
				require.NoError(t, err, now)
				assert.Equal(t, "shoot", inputs[len(inputs)-1].Owner.Kind, now)
				isNew := errorsOf(empty)
				for _, rule := range isNew {
					assert.True(t, crosscheck.IsTimeDependent(schemas.Violation{Rule: rule}), "%s: %s stops an operator", now, rule)
				}
				if len(isNew) > 0 {
					refused++
				} else {
					accepted++
				}
			}
			if test.timed {
				assert.Positive(t, refused, "no day refuses a new Shoot")
				assert.Positive(t, accepted, "no day accepts a new Shoot")
			}
		})
	}
}
