// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// A server may send back received data in any form: in an error text, a header or a name. No such
// text leaves this package with a credential in it.

const (
	// minRedactedPrefix is how many leading bytes identify a secret: truncation leaves its
	// beginning.
	minRedactedPrefix = 6
	redactedText      = "(hidden)"
)

// redactingRemote is a Remote whose errors show no credentials.
type redactingRemote struct {
	Remote
	secretForms []string
}

// withRedaction removes all credentials from a Remote's errors, including those of the proxy.
func withRedaction(r Remote, options Options) Remote {
	if forms := append(options.Credentials.secretTexts(), options.Proxy.secretTexts()...); len(forms) > 0 {
		return redactingRemote{r, forms}
	}
	return r
}

// secretTexts returns all texts that would show a secret.
func (c Credentials) secretTexts() []string {
	out := append(secretEncodings(c.Username, c.Password), secretEncodings("", c.BearerToken)...)
	for _, login := range c.Registries {
		out = append(append(out, secretEncodings(login.Username, login.Password)...), secretEncodings("", login.Token)...)
	}
	return out
}

// secretTexts returns all texts that would show the password of a proxy.
func (p Proxy) secretTexts() []string {
	if p.address == nil {
		return nil
	}
	password, _ := p.address.User.Password()
	return secretEncodings(p.address.User.Username(), password)
}

func secretEncodings(username, secret string) []string {
	if len(secret) < 3 { // too short: it would match many words
		return nil
	}
	var out []string
	for _, s := range []string{secret, username + ":" + secret} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	quoted := strings.Trim(strconv.Quote(secret), `"`)
	ofURL := strings.TrimPrefix(url.UserPassword("", secret).String(), ":")
	return append(out, secret, url.QueryEscape(secret), url.PathEscape(secret), ofURL, quoted)
}

// redactSecrets removes the secrets, and the beginnings of truncated secrets, from a text.
func redactSecrets(text string, forms []string) string {
	for _, form := range forms {
		start := form[:min(len(form), minRedactedPrefix)]
		for from := 0; ; {
			i := strings.Index(text[from:], start)
			if i < 0 {
				break
			}
			i += from
			n := len(start)
			for n < len(form) && i+n < len(text) && text[i+n] == form[n] {
				n++
			}
			text = text[:i] + redactedText + text[i+n:]
			from = i + len(redactedText)
		}
	}
	return text
}

// redactError returns an error without secrets. It drops the cause of an error that had some.
func (h redactingRemote) redactError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	shown := redactSecrets(text, h.secretForms)
	if shown == text {
		return err
	}
	reason := ReasonOf(err)
	if reason == "" {
		reason = ReasonUnreachable
	}
	return &Error{Reason: reason, Permanent: IsPermanent(err), Message: shown}
}

// Resolve implements Remote.
func (h redactingRemote) Resolve(ctx context.Context) (Head, error) {
	head, err := h.Remote.Resolve(ctx)
	return head, h.redactError(err)
}

// Fetch implements Remote.
func (h redactingRemote) Fetch(ctx context.Context, head Head) (*Snapshot, error) {
	snapshot, err := h.Remote.Fetch(ctx, head)
	return snapshot, h.redactError(err)
}

// At implements Remote.
func (h redactingRemote) At(ctx context.Context, commit string) (*Snapshot, error) {
	snapshot, err := h.Remote.At(ctx, commit)
	return snapshot, h.redactError(err)
}

// Close implements Remote.
func (h redactingRemote) Close() error { return h.redactError(h.Remote.Close()) }
