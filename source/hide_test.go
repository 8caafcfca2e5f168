package source

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServerThatEchoes: what a server sends back of the credentials is in no error.
func TestServerThatEchoes(t *testing.T) {
	const password, token = `Tr0ub4dor "&3`, "glp4t-0123456789abcdef"
	pkt := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, answer := range map[string]http.HandlerFunc{
		"as an error": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte(pkt("# service=git-upload-pack\n") + "0000" + pkt("ERR you sent "+r.Header.Get("Authorization")+", which is "+decoded(r))))
		},
		"as a type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Authorization"))
		},
		"as a broken header": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nWww-Authenticate: x\r\n %s %s\x00: y\r\n\r\n", r.Header.Get("Authorization"), decoded(r))
				_ = conn.Close()
			}
		},
	} {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		for login, credentials := range map[string]Credentials{"password": {Username: "git", Password: password}, "token": {BearerToken: token}} {
			t.Run(name+", "+login, func(t *testing.T) {
				r, err := NewRemote(Options{URL: server.URL + "/landscape.git", Insecure: true, Credentials: credentials, Dir: t.TempDir()})
				require.NoError(t, err)
				t.Cleanup(func() { _ = r.Close() })
				_, err = r.Resolve(t.Context())
				require.Error(t, err)
				for _, secret := range []string{"Tr0ub4", token[:6], base64.StdEncoding.EncodeToString([]byte("git:" + password))[:8], base64.StdEncoding.EncodeToString([]byte(password))[:8]} {
					assert.NotContains(t, err.Error(), secret)
				}
				assert.Contains(t, err.Error(), hidden)
				assert.NotEmpty(t, ReasonOf(err))
			})
		}
	}
}

func decoded(r *http.Request) string {
	_, password, ok := r.BasicAuth()
	if !ok {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	return password
}

func TestHideIn(t *testing.T) {
	forms := Credentials{Username: "u", Password: "s3cr3t-word"}.forms()
	for text, want := range map[string]string{
		"nothing":                     "nothing",
		"a s3cr3t-word b s3cr3t-word": "a (hidden) b (hidden)",
		"cut off s3cr3t-w…":           "cut off (hidden)…",
		"too little to tell: s3cr":    "too little to tell: s3cr",
		"in base64 " + base64.StdEncoding.EncodeToString([]byte("u:s3cr3t-word")): "in base64 (hidden)",
	} {
		assert.Equal(t, want, hideIn(text, forms), text)
	}
	assert.Empty(t, Credentials{Username: "u"}.forms())
}
