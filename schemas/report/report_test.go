// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

var testFindings = []schemas.Violation{
	{Severity: "error", File: "a b/shoot.yaml", Line: 3, Column: 3, Kind: "Shoot", Namespace: "garden-x", Name: "y", Field: "spec.region", Type: "Required", Rule: "structure", Message: "must be set, 100%\nalways"},
	{Severity: "warning", File: "a b/shoot.yaml", Kind: "Shoot", Namespace: "garden-x", Name: "y", Type: "Invalid", Rule: "any/metadata", Message: "odd"},
	{Severity: "error", File: "x.cue", Line: 1, Column: 2, Type: "Invalid", Rule: "landscape/cue", Message: "unexpected"},
}

func writeReport(t *testing.T, violations []schemas.Violation, o Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, violations, o))
	return b.String()
}

func TestSARIFMatchesSchema(t *testing.T) {
	for _, violations := range [][]schemas.Violation{nil, testFindings} {
		text := writeReport(t, violations, Options{Format: FormatSARIF, Version: "0.1.0"})
		document, err := sarif.FromBytes([]byte(text), sarif.WithStrictValidation())
		require.NoError(t, err)
		require.NoError(t, document.Validate())
		require.Len(t, document.Runs, 1)
		assert.Len(t, document.Runs[0].Results, len(violations))
	}
	text := writeReport(t, testFindings, Options{Format: FormatSARIF})
	assert.Contains(t, text, `"uri": "a%20b/shoot.yaml"`)
	assert.Contains(t, text, `"fullyQualifiedName": "Shoot garden-x/y"`)
	assert.Contains(t, text, `"startLine": 3`)
	assert.Contains(t, text, `"helpUri": "https://github.com/pergola-dev/pergola/blob/main/docs/reference/rules.md#files"`)
	assert.Contains(t, text, `"documentation": "https://github.com/gardener/gardener/blob/master/docs/api-reference/core.md#shoot"`)
}

func TestJSONIsAList(t *testing.T) {
	for _, violations := range [][]schemas.Violation{nil, testFindings} {
		var back []schemas.Violation
		require.NoError(t, json.Unmarshal([]byte(writeReport(t, violations, Options{Format: FormatJSON})), &back))
		assert.Len(t, back, len(violations))
		assert.NotNil(t, back)
	}
}

func TestGitHubEscapes(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(writeReport(t, testFindings, Options{Format: FormatGitHub})), "\n")
	assert.Equal(t, []string{
		"::error file=a b/shoot.yaml,line=3,col=3,title=Shoot garden-x/y%3A structure::spec.region: must be set, 100%25%0Aalways",
		"::warning file=a b/shoot.yaml,line=1,col=1,title=Shoot garden-x/y%3A any/metadata::odd",
		"::error file=x.cue,line=1,col=2,title=landscape/cue::unexpected",
	}, lines)
}

func TestUnknownFormat(t *testing.T) {
	require.ErrorContains(t, Write(&bytes.Buffer{}, nil, Options{Format: "xml"}), "use text, json, sarif, github")
}

func TestTextExcerpts(t *testing.T) {
	long := "kind: Shoot\nspec: {" + strings.Repeat("a: b, ", 100) + "here: 1}\n"
	tests := map[string]struct {
		content string
		v       schemas.Violation
		want    string
	}{
		"source line": {"kind: Shoot\n\tspec: 5\n", schemas.Violation{Line: 2, Column: 8}, "    2 | \tspec: 5\n      | \t      ^\n"},
		"wide":        {long, schemas.Violation{Line: 2, Column: 608}, "b, here: 1}\n"},
		"end of line": {"spec:\n", schemas.Violation{Line: 1, Column: 6}, "    1 | spec:\n      |      ^\n"},
		"crlf":        {"spec: a\r\n", schemas.Violation{Line: 1, Column: 1}, "    1 | spec: a\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.v.Severity, test.v.File, test.v.Message = "error", "f.yaml", "no"
			text := writeReport(t, []schemas.Violation{test.v}, Options{ReadSource: func(string) ([]byte, error) { return []byte(test.content), nil }})
			assert.Contains(t, text, test.want)
			assert.Contains(t, text, "Not valid: 1 error in 1 file.\n")
			for _, line := range strings.Split(text, "\n") {
				assert.Less(t, len(line), 160)
			}
		})
	}
}

// TestTextHidesSecrets checks that source lines with possible secret values are omitted.
func TestTextHidesSecrets(t *testing.T) {
	for name, content := range map[string]string{
		"secret":          "kind: Secret\nx: hidden\n",
		"secret in flow":  "{kind: Secret, apiVersion: v1}\nx: hidden\n",
		"secret in CUE":   "kind: \"Secret\"\nx: hidden\n",
		"internal secret": "kind: InternalSecret # x\nx: hidden\n",
		"state":           "kind: ShootState\nx: hidden\n",
		"list":            "kind: List\nx: hidden\n",
		"sops":            "a: ENC[AES256_GCM,data:x]\nx: hidden\n",
		"telling name":    "kind: Shoot\npassword: hidden\n",
		"escape":          "kind: Shoot\nx: hidden\x1b[31m\n",
		"no file":         "",
		"not text":        "kind: Shoot\nx: hidden\xff\n",
	} {
		t.Run(name, func(t *testing.T) {
			v := schemas.Violation{Severity: "error", File: "f", Line: 2, Column: 1, Message: "no"}
			text := writeReport(t, []schemas.Violation{v}, Options{ReadSource: func(string) ([]byte, error) {
				if content == "" {
					return nil, os.ErrNotExist
				}
				return []byte(content), nil
			}})
			assert.NotContains(t, text, "hidden")
		})
	}
}

// TestTextEscapes checks that input cannot forge lines or terminal colours.
func TestTextEscapes(t *testing.T) {
	v := schemas.Violation{Severity: "error", File: "f", Kind: "Shoot", Name: "\x1b[31mX\nValid: no findings.", Message: "no\rmore"}
	text := writeReport(t, []schemas.Violation{v}, Options{})
	assert.Equal(t, 2, strings.Count(text, "\n"))
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\r")
}

func TestTextSummary(t *testing.T) {
	assert.Equal(t, "Valid: no findings.\n", writeReport(t, nil, Options{}))
	assert.Equal(t, "Valid: no findings.\n", writeReport(t, nil, Options{DocumentationHint: true}))
	assert.Regexp(t, "in 2 files\\.\n`pergola explain KIND.FIELD` says more .*\n$", writeReport(t, testFindings, Options{DocumentationHint: true}))
	assert.Contains(t, writeReport(t, testFindings, Options{}), "Not valid: 2 errors, 1 warning in 2 files.\n")
	assert.Contains(t, writeReport(t, testFindings[1:2], Options{}), "Valid: 1 warning in 1 file.\n")
	assert.Contains(t, writeReport(t, testFindings[1:2], Options{Colored: true}), "\x1b[33mwarning\x1b[0m")
}
