package notification

import (
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of notifications, in bytes and entries.
const (
	longestMessage = 8 << 10
	longestDetail  = 2 << 10
	mostDetails    = 32
)

// userInfo matches a URL's user and password.
var userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#\s@]*@`)

// redacted returns an event without credentials of URLs and tokens of destinations, and bounded in
// size.
func redacted(e Event, to []Destination) Event {
	e.SourceURL = hide(e.SourceURL, to)
	e.Message = cut(printable(hide(e.Message, to)), longestMessage)
	e.Reason = cut(printable(hide(e.Reason, to)), 128)
	e.Revision = cut(printable(hide(e.Revision, to)), 512)
	detail := map[string]string{}
	for _, key := range sortedKeys(e.Detail) {
		if len(detail) == mostDetails {
			break
		}
		detail[cut(printable(hide(key, to)), 64)] = cut(printable(hide(e.Detail[key], to)), longestDetail)
	}
	e.Detail = nil
	if len(detail) > 0 {
		e.Detail = maps.Clone(detail)
	}
	return e
}

func hide(text string, to []Destination) string {
	for _, d := range to {
		if token := strings.TrimSpace(string(d.Token)); len(token) >= 4 {
			text = strings.ReplaceAll(text, token, "[secret]")
		}
	}
	return userInfo.ReplaceAllString(text, "$1")
}

// printable removes control characters except line breaks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut shortens a text to so many bytes, between characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
