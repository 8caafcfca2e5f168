package health

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// complaints matches lines that say why a program ends: "Error: unknown flag", a panic, an error of
// klog (E0102) or of a structured log.
var complaints = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(?i:error|panic|fatal)\b|[EF][0-9]{4} )|\blevel=(?i:error|fatal)\b|"level":\s*"(?i:error|fatal)"`)
})

// lastWords returns the part of a long message that says why a program ended: its last error line,
// else its end. Usage and settings may surround it.
func lastWords(message string) string {
	message = strings.TrimSpace(message)
	if len(message) <= maxForeignMessage {
		return message
	}
	for _, line := range slices.Backward(strings.Split(message, "\n")) {
		if complaints().MatchString(line) {
			return line
		}
	}
	end := message[len(message)-maxForeignMessage+len("…"):]
	for len(end) > 0 && !utf8.RuneStart(end[0]) {
		end = end[1:]
	}
	return "…" + end
}
