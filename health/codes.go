// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	"github.com/pergola-dev/pergola/health/condition"
)

// addCodes adds the error codes that match the message, by upstream's patterns.
func addCodes(f *Failure) *Failure {
	if f != nil {
		f.Codes = mergeCodes(f.Codes, f.Message)
	}
	return f
}

// mergeCodes adds the codes that match the text; the result is nil if there are none.
func mergeCodes(codes []string, text string) []string {
	out := slices.Clone(codes)
	for _, code := range condition.Codes(text) {
		if !slices.Contains(out, string(code)) {
			out = append(out, string(code))
		}
	}
	return out
}
