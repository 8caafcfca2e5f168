// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of notifications, in bytes and entries.
const (
	maxMessageBytes = 8 << 10
	maxDetailBytes  = 2 << 10
	maxDetails      = 32
)

// userInfoPattern matches a URL's user and password.
var userInfoPattern = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#\s@]*@`)

// redactEvent returns an event without credentials of URLs and tokens of destinations, and bounded
// in size.
func redactEvent(e Event, to []Destination) Event {
	clean := func(text string, most int) string {
		return truncateText(removeControlCharacters(redactSecrets(text, to)), most)
	}
	e.SourceURL = redactSecrets(e.SourceURL, to)
	e.Message, e.Reason, e.Revision = clean(e.Message, maxMessageBytes), clean(e.Reason, 128), clean(e.Revision, 512)
	detail := map[string]string{}
	for _, key := range sortedKeys(e.Detail)[:min(len(e.Detail), maxDetails)] {
		detail[clean(key, 64)] = clean(e.Detail[key], maxDetailBytes)
	}
	if e.Detail = nil; len(detail) > 0 {
		e.Detail = detail
	}
	return e
}

func redactSecrets(text string, to []Destination) string {
	for _, d := range to {
		if token := strings.TrimSpace(string(d.Token)); len(token) >= 4 {
			text = strings.ReplaceAll(text, token, "[secret]")
		}
	}
	return userInfoPattern.ReplaceAllString(text, "$1")
}

// removeControlCharacters removes control characters except line breaks.
func removeControlCharacters(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// truncateText shortens a text to so many bytes, between characters.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
