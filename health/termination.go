// SPDX-License-Identifier: Apache-2.0

package health

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// errorLinePattern matches lines that say why a program ends: "Error: unknown flag", a panic, an
// error of klog (E0102) or of a structured log.
var errorLinePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(?i:error|panic|fatal)\b|[EF][0-9]{4} )|\blevel=(?i:error|fatal)\b|"level":\s*"(?i:error|fatal)"`)
})

// terminationCause returns the part of a long message that says why a program ended: its last error
// line, else its end. Usage and settings may surround it.
func terminationCause(message string) string {
	message = strings.TrimSpace(message)
	if len(message) <= maxForeignMessage {
		return message
	}
	for _, line := range slices.Backward(strings.Split(message, "\n")) {
		if errorLinePattern().MatchString(line) {
			return line
		}
	}
	end := message[len(message)-maxForeignMessage+len("…"):]
	for len(end) > 0 && !utf8.RuneStart(end[0]) {
		end = end[1:]
	}
	return "…" + end
}
