// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"
)

// BenchmarkCleanTexts masks 64 KiB of three kinds of texts each, such as rules, dashboards and
// scripts in ConfigMaps.
func BenchmarkCleanTexts(b *testing.B) {
	for name, line := range map[string]string{
		"YAML":   "- alert: TokenExpires\n  expr: rate(token_errors_total{job=\"a\"}[5m]) > 0\n  for: 5m\n",
		"script": "if [ -z \"$TOKEN\" ]; then curl --header 'X-Api-Key: abc' -u a:b https://example.com/path?x=1 || exit 1; fi\n",
		"prose":  "The secret is not where the key of the token was, and the password is not known to anybody.\n",
	} {
		text := strings.Repeat(line, 64<<10/len(line))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Text(text)
			}
		})
	}
}
