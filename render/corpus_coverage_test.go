// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/corpus"
)

func (c corpusCase) selectObjects(objects map[string]map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for key, object := range objects {
		if len(c.Only) == 0 || slices.ContainsFunc(c.Only, func(only string) bool { return sameObject(only, key) }) {
			out[key] = object
		}
	}
	return out
}

// sameObject reports whether key matches listed, which may end in *.
func sameObject(listed, key string) bool {
	prefix, open := strings.CutSuffix(listed, "*")
	return listed == key || open && strings.HasPrefix(key, prefix)
}

// corpusCoverage counts the objects that upstream recorded in a folder by their state.
type corpusCoverage struct {
	recorded, agree, listed int
	// open are objects without a case.
	open []string
}

// TestCorpusCoverage prints how many of upstream's objects for the example Garden render to
// equal content. Each belongs to a case of testdata/corpus.yaml, or is listed there as missing with
// a reason. Rendered objects must not be listed.
func TestCorpusCoverage(t *testing.T) {
	root := corpus.Dir(t)
	raw, err := os.ReadFile("testdata/corpus.yaml")
	require.NoError(t, err)
	var file corpusFile
	require.NoError(t, yaml.UnmarshalStrict(raw, &file))
	res, err := Render(corpusInput(t, root, "garden"), Options{Catalogue: components.FS})
	require.NoError(t, err)
	recordings, err := filepath.Glob(filepath.Join(root, "objects", "garden", "*", "reconcile-example.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, recordings)

	missing := map[string]bool{}
	for name, reason := range file.Missing {
		missing[name] = true
		if strings.TrimSpace(reason) == "" {
			t.Errorf("missing: %s has no reason", name)
		}
	}
	places := recordedPlacements(t, root, "garden", res)
	var sum corpusCoverage
	for _, recording := range recordings {
		folder := "garden/" + filepath.Base(filepath.Dir(recording))
		s := coverageOf(t, file, res, folder, corpusObjects(t, recording, places))
		sum.recorded, sum.agree, sum.listed = sum.recorded+s.recorded, sum.agree+s.agree, sum.listed+s.listed
		t.Logf("%s: %d of %d objects agree, %d differ as listed", folder, s.agree, s.recorded, s.listed)
		if len(s.open) == s.recorded {
			if !missing[folder] {
				t.Errorf("%s is in no case of testdata/corpus.yaml, and not missing there", folder)
			}
			delete(missing, folder)
			continue
		}
		for _, object := range s.open {
			if !missing[folder+" "+object] {
				t.Errorf("%s: %s is in no case of testdata/corpus.yaml, and not missing there", folder, object)
			}
			delete(missing, folder+" "+object)
		}
	}
	t.Logf("the Garden: %d of %d objects agree, %d differ as listed", sum.agree, sum.recorded, sum.listed)
	for name := range missing {
		t.Errorf("missing: %s has a case, or is not recorded: take it off the list", name)
	}
}

// coverageOf compares a folder with the components in its cases.
func coverageOf(t *testing.T, file corpusFile, res Result, folder string, recorded map[string]map[string]any) corpusCoverage {
	t.Helper()
	s := corpusCoverage{recorded: len(recorded)}
	open := map[string]bool{}
	for key := range recorded {
		open[key] = true
	}
	for _, c := range file.Cases {
		if !slices.Contains(c.Corpus, folder) {
			continue
		}
		want := c.selectObjects(recorded)
		got := ourObjects(t, res, c.Component)
		for key := range want {
			if !open[key] {
				continue
			}
			delete(open, key)
			differences := compareObjects(map[string]map[string]any{key: want[key]}, onlyKey(got, key))
			switch used := make([]bool, len(c.Differences)); {
			case len(differences) == 0:
				s.agree++
			case !slices.ContainsFunc(differences, func(d foundDifference) bool { return !isAllowed(c.Differences, used, d) }):
				s.listed++
			}
		}
	}
	for key := range open {
		s.open = append(s.open, key)
	}
	slices.Sort(s.open)
	return s
}

func onlyKey(objects map[string]map[string]any, key string) map[string]map[string]any {
	object, has := objects[key]
	if !has {
		return nil
	}
	return map[string]map[string]any{key: object}
}
