// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/getsops/sops/v3/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlainCommentsInEncryptedFiles: they are found without a key, and never quoted.
func TestPlainCommentsInEncryptedFiles(t *testing.T) {
	const message = "Forbidden the comment is not encrypted, but the SOPS metadata require it: remove it, or write it with `sops FILE`; renew the value if it holds one"
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"below the field":       {"stringData:\n", "stringData:\n  # old: TOPSECRET\n", []string{"s.yaml:8:3 " + message}},
		"not indented":          {"stringData:\n", "stringData:\n# old: TOPSECRET\n", []string{"s.yaml:8:1 " + message}},
		"two lines":             {"stringData:\n", "stringData:\n  # old:\n  #\n  # TOPSECRET\n", []string{"s.yaml:8:3 " + message, "s.yaml:10:3 " + message}},
		"beside a value":        {"type:str]\n", "type:str] # TOPSECRET\n", []string{"s.yaml:8:149 " + message}},
		"after the last value":  {"sops:\n", "  # TOPSECRET\nsops:\n", []string{"s.yaml:12:3 " + message}},
		"encrypted":             {"stringData:\n", "stringData:\n  #ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:comment]\n", nil},
		"empty":                 {"stringData:\n", "stringData:\n  #\n", nil},
		"outside of the values": {"kind: Secret\n", "# What this is for.\nkind: Secret # of the seed\n", nil},
		"in the metadata":       {"sops:\n", "sops:\n  # written by a program\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(sopsFile(t, "secret.yaml"), test.before, test.after, 1)
			require.NotEqual(t, sopsFile(t, "secret.yaml"), text)
			found, violations := parse(t, "s.yaml", text, Options{})
			if test.want == nil {
				assert.Empty(t, violations)
			} else {
				assert.Equal(t, test.want, summaries(violations))
			}
			assert.NotContains(t, fmt.Sprint(violations), "TOPSECRET")
			require.Len(t, found, 1)
			assert.Equal(t, SecretEncrypted, found[0].Secret)
		})
	}
}

// TestSOPSIsSilent: its loggers quote values that they cannot decrypt.
func TestSOPSIsSilent(t *testing.T) {
	require.NotEmpty(t, logging.Loggers)
	for name, logger := range logging.Loggers {
		assert.Equal(t, io.Discard, logger.Out, name)
	}
}

// TestDamagedDataKey: a damaged data key is an error, not a missing key.
func TestDamagedDataKey(t *testing.T) {
	text := sopsFile(t, "secret.yaml")
	_, rest, ok := strings.Cut(text, "-----BEGIN AGE ENCRYPTED FILE-----\n")
	require.True(t, ok)
	line, _, _ := strings.Cut(rest, "\n")
	damaged := strings.Replace(text, line, strings.Replace(line, line[len(line)-8:], "AAAAAAAA", 1), 1)
	require.NotEqual(t, text, damaged)
	found, violations := parse(t, "s.yaml", damaged, testKey(t))
	require.Len(t, violations, 1)
	assert.Contains(t, violations[0].Message, "sops.age[].enc) is damaged, so the file is unreadable; restore it from Git")
	assert.Equal(t, SecretEncrypted, found[0].Secret)
	for _, opts := range []Options{demoKey(t), {}} {
		_, without := parse(t, "s.yaml", damaged, opts)
		assert.Equal(t, violations, without)
	}
}
