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
	// hiddenFrom is how many leading bytes identify a secret: truncation leaves its beginning.
	hiddenFrom = 6
	hidden     = "(hidden)"
)

// hiding is a Remote whose errors show no credentials.
type hiding struct {
	Remote
	forms []string
}

// hide removes all credentials from a Remote's errors, including those of the proxy.
func hide(r Remote, options Options) Remote {
	if forms := append(options.Credentials.forms(), options.Proxy.forms()...); len(forms) > 0 {
		return hiding{r, forms}
	}
	return r
}

// forms returns all texts that would show a secret.
func (c Credentials) forms() []string {
	out := append(formsOf(c.Username, c.Password), formsOf("", c.BearerToken)...)
	for _, login := range c.Registries {
		out = append(append(out, formsOf(login.Username, login.Password)...), formsOf("", login.Token)...)
	}
	return out
}

// forms returns all texts that would show the password of a proxy.
func (p Proxy) forms() []string {
	if p.address == nil {
		return nil
	}
	password, _ := p.address.User.Password()
	return formsOf(p.address.User.Username(), password)
}

func formsOf(username, secret string) []string {
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

// hideIn removes the secrets, and the beginnings of truncated secrets, from a text.
func hideIn(text string, forms []string) string {
	for _, form := range forms {
		start := form[:min(len(form), hiddenFrom)]
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
			text = text[:i] + hidden + text[i+n:]
			from = i + len(hidden)
		}
	}
	return text
}

// error returns an error without secrets. It drops the cause of an error that had some.
func (h hiding) error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	shown := hideIn(text, h.forms)
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
func (h hiding) Resolve(ctx context.Context) (Head, error) {
	head, err := h.Remote.Resolve(ctx)
	return head, h.error(err)
}

// Fetch implements Remote.
func (h hiding) Fetch(ctx context.Context, head Head) (*Snapshot, error) {
	snapshot, err := h.Remote.Fetch(ctx, head)
	return snapshot, h.error(err)
}

// At implements Remote.
func (h hiding) At(ctx context.Context, commit string) (*Snapshot, error) {
	snapshot, err := h.Remote.At(ctx, commit)
	return snapshot, h.error(err)
}

// Close implements Remote.
func (h hiding) Close() error { return h.error(h.Remote.Close()) }
