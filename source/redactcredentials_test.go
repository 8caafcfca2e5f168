// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/pergola-dev/pergola/source/gittest"
)

// TestServerErrorsHideCredentials: no error contains credentials that a server sends back.
func TestServerErrorsHideCredentials(t *testing.T) {
	const password, token = `Tr0ub4dor "&3`, "glp4t-0123456789abcdef"
	pkt := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, answer := range map[string]http.HandlerFunc{
		"as an error": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte(pkt("# service=git-upload-pack\n") + "0000" + pkt("ERR you sent "+r.Header.Get("Authorization")+", which is "+sentSecret(r))))
		},
		"as a type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Authorization"))
		},
		"as a broken header": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nWww-Authenticate: x\r\n %s %s\x00: y\r\n\r\n", r.Header.Get("Authorization"), sentSecret(r))
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
				assert.Contains(t, err.Error(), redactedText)
				assert.NotEmpty(t, ReasonOf(err))
			})
		}
	}
}

// TestProxyErrorsHideCredentials: no error contains a login that a proxy sends back, for any kind
// of connection.
func TestProxyErrorsHideCredentials(t *testing.T) {
	const username, password = "robot", "pr0xy-Tr0ub4dor&9"
	login := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	pkt := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, answer := range map[string]func(got string) string{
		"as a status":  func(got string) string { return "HTTP/1.1 502 you sent " + got + "\r\nContent-Length: 0\r\n\r\n" },
		"as a refusal": func(got string) string { return "HTTP/1.1 407 no: " + got + "\r\nContent-Length: 0\r\n\r\n" },
		"as a type": func(got string) string {
			return "HTTP/1.1 200 OK\r\nContent-Type: " + got + "\r\nContent-Length: 0\r\n\r\n"
		},
		"as no HTTP": func(got string) string { return got + "\r\n\r\n" },
		"as an error": func(got string) string {
			body := pkt("# service=git-upload-pack\n") + "0000" + pkt("ERR you sent "+got)
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		},
	} {
		address := echoingProxy(t, func(r *http.Request) string {
			got := r.Header.Get("Proxy-Authorization")
			assert.Equal(t, "Basic "+login, got)
			return answer(got + " " + username + ":" + password)
		})
		for _, url := range []string{
			"https://git.example.org/l.git", "http://git.example.org/l.git", "oci://registry.example.org/l", "ssh://git@git.example.org/l.git",
		} {
			t.Run(name+", "+strings.SplitN(url, ":", 2)[0], func(t *testing.T) {
				proxy, err := ProxyOf(map[string][]byte{"address": []byte("http://" + address), "username": []byte(username), "password": []byte(password)})
				require.NoError(t, err)
				options := Options{URL: url, Insecure: !strings.HasPrefix(url, "oci"), Proxy: proxy, Dir: t.TempDir()}
				if strings.HasPrefix(url, "ssh") {
					host, identity := gittest.NewKey(t)
					options.Credentials, err = CredentialsOf(url, map[string][]byte{
						"identity": identity, "known_hosts": []byte(knownhosts.Line([]string{"git.example.org"}, host.PublicKey())),
					})
					require.NoError(t, err)
				}
				r, err := NewRemote(options)
				require.NoError(t, err)
				t.Cleanup(func() { _ = r.Close() })
				_, err = r.Resolve(t.Context())
				require.Error(t, err)
				assert.NotContains(t, err.Error(), password[:6])
				assert.NotContains(t, err.Error(), login[:8])
				assert.NotEmpty(t, ReasonOf(err))
			})
		}
	}
}

// echoingProxy answers every request with a text.
func echoingProxy(t *testing.T, answer func(*http.Request) string) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = conn.Write([]byte(answer(r)))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func sentSecret(r *http.Request) string {
	_, password, ok := r.BasicAuth()
	if !ok {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	return password
}

func TestRedactSecrets(t *testing.T) {
	forms := Credentials{Username: "u", Password: "s3cr3t-word"}.secretTexts()
	for text, want := range map[string]string{
		"nothing":                     "nothing",
		"a s3cr3t-word b s3cr3t-word": "a (hidden) b (hidden)",
		"cut off s3cr3t-w…":           "cut off (hidden)…",
		"too little to tell: s3cr":    "too little to tell: s3cr",
		"in base64 " + base64.StdEncoding.EncodeToString([]byte("u:s3cr3t-word")): "in base64 (hidden)",
	} {
		assert.Equal(t, want, redactSecrets(text, forms), text)
	}
	assert.Empty(t, Credentials{Username: "u"}.secretTexts())
}
