// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestCorpusShoots checks that every Shoot that upstream refuses has findings at the same fields,
// the first with the same type.
func TestCorpusShoots(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "cases", "shoot-*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			header := func(name string) string {
				found := regexp.MustCompile(`(?m)^# ` + name + `: (.*)$`).FindSubmatch(data)
				if found == nil {
					return ""
				}
				return string(found[1])
			}
			objects := parseManifest(t, data)
			in := Input{Object: objects[len(objects)-1]}
			if len(objects) > 1 {
				in.Old = objects[0]
			}
			violations, err := Validate(t.Context(), []Input{in}, Options{})
			require.NoError(t, err)
			found := errorTypesByField(violations)
			wanted := []string{}
			if header("expect") == "invalid" {
				wanted = append(wanted, header("field"))
				assert.Equal(t, header("type"), found[header("field")], "%v", formatViolations(violations))
				if also := header("also"); also != "" {
					wanted = append(wanted, strings.Split(also, " | ")...)
				}
			}
			fields := []string{}
			for field := range found {
				fields = append(fields, field)
			}
			assert.ElementsMatch(t, wanted, fields, "%v", formatViolations(violations))
		})
	}
}
