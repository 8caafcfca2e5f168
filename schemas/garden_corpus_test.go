// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestGardenCorpus compares every case of the garden's kinds except Shoots with upstream: the
// field, its type and further fields of the same run. It adds the other objects that a case needs.
func TestGardenCorpus(t *testing.T) {
	folder := corpus.Dir(t)
	files, err := filepath.Glob(filepath.Join(folder, "cases", "*.yaml"))
	require.NoError(t, err)
	count := 0
	for _, file := range files {
		if !regexp.MustCompile(`^(garden|seed|project|cloudprofile|backupbucket|backupentry|controllerdeployment|controllerregistration)-`).MatchString(filepath.Base(file)) {
			continue
		}
		count++
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			header := map[string]string{}
			for _, line := range regexp.MustCompile(`(?m)^# (\w+): (.*)$`).FindAllStringSubmatch(string(data), -1) {
				header[line[1]] = line[2]
			}
			objects := parseManifest(t, data)
			in := Input{Object: objects[len(objects)-1]}
			if len(objects) > 1 {
				in.Old = objects[0]
			}
			opts := Options{}
			if header["needs"] != "" {
				around, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(header["needs"])))
				require.NoError(t, err)
				opts.Landscape = &LandscapeObjects{Objects: parseManifest(t, around)}
			}
			found, err := Validate(t.Context(), []Input{in}, opts)
			require.NoError(t, err)
			if header["expect"] == "valid" {
				assert.Empty(t, errorsOnly(found))
				return
			}
			fields := map[string][]string{}
			for _, v := range errorsOnly(found) {
				// cases have a landscape only for its Extensions
				if v.Rule != "any/one-shot-operation" {
					fields[v.Field] = append(fields[v.Field], string(v.Type))
				}
			}
			for _, typ := range strings.Split(header["type"], ",") {
				assert.Contains(t, fields[header["field"]], typ, "%v", formatViolations(found))
			}
			wanted := []string{header["field"]}
			if header["also"] != "" {
				wanted = append(wanted, strings.Split(header["also"], " | ")...)
			}
			names := make([]string, 0, len(fields))
			for name := range fields {
				names = append(names, name)
			}
			slices.Sort(names)
			slices.Sort(wanted)
			assert.Equal(t, wanted, names, "%v", formatViolations(found))
		})
	}
	assert.Greater(t, count, 50)
}
