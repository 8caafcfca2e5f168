package source

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// A server may send back what it was sent, in whatever form: as text of an error, in a header, as
// the name of something. No such text leaves this package with a credential in it.

const (
	// hiddenFrom is how much of a secret tells it: of what was cut off, the beginning is left.
	hiddenFrom = 6
	hidden     = "(hidden)"
)

// hiding is a Remote whose errors show no credentials.
type hiding struct {
	Remote
	forms []string
}

// hide makes a Remote show none of the credentials, those of the proxy included: that one sees what
// it is sent, too.
func hide(r Remote, options Options) Remote {
	if forms := append(options.Credentials.forms(), options.Proxy.forms()...); len(forms) > 0 {
		return hiding{r, forms}
	}
	return r
}

// forms are all texts that would show a secret.
func (c Credentials) forms() []string {
	out := append(formsOf(c.Username, c.Password), formsOf("", c.BearerToken)...)
	for _, login := range c.Registries {
		out = append(append(out, formsOf(login.Username, login.Password)...), formsOf("", login.Token)...)
	}
	return out
}

// forms are all texts that would show the password of a proxy.
func (p Proxy) forms() []string {
	if p.address == nil {
		return nil
	}
	password, _ := p.address.User.Password()
	return formsOf(p.address.User.Username(), password)
}

func formsOf(username, secret string) []string {
	if len(secret) < 3 { // none; all words would have it
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

// hideIn takes the secrets out of a text, and the beginnings of those that were cut off in it.
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

// error gives an error without secrets. The cause of one that had some is left out, as it has them,
// too.
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
