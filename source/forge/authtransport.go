// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxResponseSize is the maximum size of an answer, in bytes.
const maxResponseSize = 16 << 20

// Error is a refusal by a forge.
type Error struct {
	// Status is the status of the answer.
	Status int
	// Message is the message of the forge, bounded and without the token.
	Message string
	// RetryAfter is the wait that the forge asks for; it is 0 if it names none.
	RetryAfter time.Duration
	// RateLimited says that the forge refused because of too many requests.
	RateLimited bool
}

func (e *Error) Error() string {
	text := fmt.Sprintf("the forge answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// IsTemporary reports whether the same request may succeed later.
func (e *Error) IsTemporary() bool {
	return e.RateLimited || e.Status >= 500 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests
}

// IsTemporary reports whether the same request may succeed later, and after which wait (0: at
// once).
func IsTemporary(err error) (bool, time.Duration) {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.IsTemporary(), refused.RetryAfter
	}
	if errors.Is(err, context.Canceled) {
		return false, 0
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF), 0
}

// authTransport sends requests: it adds the token, only for its forge, and turns refusals into
// errors before the library would log them unchanged.
type authTransport struct {
	provider string
	base     *url.URL
	token    string
	redact   func(string) string
	next     *http.Transport
}

func (c *authTransport) CloseIdleConnections() { c.next.CloseIdleConnections() }

func (c *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != c.base.Scheme || req.URL.Host != c.base.Host {
		return nil, fmt.Errorf("a redirect to %s instead of %s is not followed", req.URL.Host, c.base.Host)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "pergola")
	switch c.provider {
	case GitHub:
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("Accept", "application/vnd.github+json")
		req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	case GitLab:
		req.Header.Set("Private-Token", c.token)
	default:
		req.Header.Set("Authorization", "token "+c.token)
	}
	res, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxResponseSize), res.Body}
		return res, nil
	}
	defer res.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(res.Body, 8<<10)) // a partial body suffices
	return nil, c.refusalError(res, start)
}

func (c *authTransport) refusalError(res *http.Response, body []byte) *Error {
	out := &Error{Status: res.StatusCode, Message: c.redact(messageOf(body))}
	if location := res.Header.Get("Location"); location != "" && res.StatusCode < 400 {
		out.Message = "it redirects to another address; was the repository, or the forge, moved?"
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		out.RetryAfter, out.RateLimited = time.Duration(min(seconds, 3600))*time.Second, res.StatusCode == http.StatusForbidden
	}
	if res.Header.Get("X-RateLimit-Remaining") == "0" && res.StatusCode == http.StatusForbidden {
		out.RateLimited = true
		reset, _ := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64)
		date, err := http.ParseTime(res.Header.Get("Date"))
		if wait := time.Unix(reset, 0).Sub(date); err == nil && wait > 0 && out.RetryAfter == 0 {
			out.RetryAfter = min(wait, time.Hour)
		}
	}
	return out
}

// messageOf extracts the message from a forge's answer.
func messageOf(body []byte) string {
	var answer struct {
		Message any             `json:"message"`
		Error   any             `json:"error"`
		Errors  json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "" // a page for browsers
	}
	var parts []string
	for _, part := range []any{answer.Message, answer.Error} {
		if part != nil {
			parts = append(parts, fmt.Sprint(part))
		}
	}
	if len(answer.Errors) > 0 && string(answer.Errors) != "null" {
		parts = append(parts, string(answer.Errors))
	}
	return boundedLine(strings.Join(parts, ": "), 300)
}

// boundedLine returns foreign text on one line, truncated to a number of characters.
func boundedLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// wrapError adds the failed operation. It removes the URL, which may contain the text that was
// sent.
func (f *Forge) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
