// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

func TestFetchOverSSH(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	one := repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeSSH(t, root)
	address := server.URL + "/landscape.git"
	credentials, err := CredentialsOf(address, map[string][]byte{"identity": server.Identity, "known_hosts": server.KnownHosts})
	require.NoError(t, err)
	r := newTestRemote(t, Options{URL: address, Credentials: credentials})
	assert.Equal(t, one, resolveAndFetch(t, r).Commit)
	assert.Equal(t, 2, server.Connections())
	resolveAndFetch(t, r)
	assert.Equal(t, 3, server.Connections(), "a poll with nothing new is one connection")
	repo.PushFile("a.yaml", "2", "two")
	assert.Equal(t, "2", readSnapshotFile(t, resolveAndFetch(t, r), "a.yaml"))

	_, err = newTestRemote(t, Options{URL: server.URL + "/gone.git", Credentials: credentials}).Resolve(t.Context())
	requireReason(t, ReasonRepositoryNotFound, err)

	_, stranger := gittest.NewKey(t)
	credentials, err = CredentialsOf(address, map[string][]byte{"identity": stranger, "known_hosts": server.KnownHosts})
	require.NoError(t, err)
	_, err = newTestRemote(t, Options{URL: address, Credentials: credentials}).Resolve(t.Context())
	requireReason(t, ReasonAuthenticationFailed, err)
}

func TestHostKeysOfSSH(t *testing.T) {
	root := t.TempDir()
	gittest.New(t, root, "landscape").PushFile("a.yaml", "1", "one")
	server := gittest.ServeSSH(t, root)
	other, _ := gittest.NewKey(t)
	address := server.URL + "/landscape.git"
	with := func(known string) (Remote, error) {
		credentials, err := CredentialsOf(address, map[string][]byte{"identity": server.Identity, "known_hosts": []byte(known)})
		require.NoError(t, err)
		return NewRemote(Options{URL: address, Credentials: credentials})
	}
	r, err := with(knownhosts.Line([]string{server.Address}, other.PublicKey()))
	require.NoError(t, err)
	_, err = r.Resolve(t.Context())
	requireReason(t, ReasonHostKeyMismatch, err)
	require.ErrorContains(t, err, "known_hosts")
	_, err = with(knownhosts.Line([]string{"elsewhere.example.com"}, other.PublicKey()))
	requireReason(t, ReasonHostKeyMismatch, err)
	_, err = with(knownhosts.Line([]string{server.Address}, other.PublicKey()) + "\n@revoked " + strings.TrimSpace(string(server.KnownHosts)))
	require.NoError(t, err)
	r, err = with(string(server.KnownHosts) + "@revoked " + strings.TrimSpace(string(server.KnownHosts)))
	require.NoError(t, err)
	_, err = r.Resolve(t.Context())
	requireReason(t, ReasonHostKeyMismatch, err)
}

func TestCredentialsOf(t *testing.T) {
	_, identity := gittest.NewKey(t)
	host, _ := gittest.NewKey(t)
	known := []byte(knownhosts.Line([]string{"git.example.com"}, host.PublicKey()))
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("opensesame"))
	require.NoError(t, err)
	locked := pem.EncodeToMemory(block)
	docker := fmt.Sprintf(`{"auths":{"https://registry.example.com/v2/":{"auth":"%s"}}}`, base64.StdEncoding.EncodeToString([]byte("bot:hunter2")))
	for name, c := range map[string]struct {
		url  string
		data map[string]string
		err  string
	}{
		"basic":                {url: "https://git.example.com/x", data: map[string]string{"username": "bot", "password": "hunter2\n"}},
		"bearer":               {url: "https://git.example.com/x", data: map[string]string{"bearerToken": "hunter2"}},
		"both":                 {url: "https://git.example.com/x", data: map[string]string{"bearerToken": "hunter2", "username": "bot", "password": "hunter2"}, err: "bearerToken and username or password"},
		"half":                 {url: "https://git.example.com/x", data: map[string]string{"username": "bot"}, err: "username and no password"},
		"other half":           {url: "https://git.example.com/x", data: map[string]string{"password": "hunter2"}, err: "password and no username"},
		"nothing":              {url: "https://git.example.com/x", data: map[string]string{"token": "hunter2"}, err: "no credentials for https"},
		"of ssh":               {url: "https://git.example.com/x", data: map[string]string{"identity": "hunter2"}, err: "the Secret has a key for SSH"},
		"line break":           {url: "https://git.example.com/x", data: map[string]string{"bearerToken": "hunter2\nX: y"}, err: "line break"},
		"ca":                   {url: "https://git.example.com/x", data: map[string]string{"ca.crt": "hunter2"}, err: "no certificate"},
		"certificate":          {url: "https://git.example.com/x", data: map[string]string{"tls.crt": "hunter2"}, err: "only one of tls.crt and tls.key"},
		"certificate and key":  {url: "https://git.example.com/x", data: map[string]string{"tls.crt": "hunter2", "tls.key": "hunter2"}, err: "are not a certificate and its key"},
		"ssh":                  {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(identity), "known_hosts": string(known)}},
		"ssh unneeded":         {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(identity), "known_hosts": string(known), "password": "hunter2"}},
		"ssh locked":           {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(locked), "known_hosts": string(known), "password": "opensesame\n"}},
		"ssh no passphrase":    {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(locked), "known_hosts": string(known)}, err: "has a passphrase"},
		"ssh wrong passphrase": {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(locked), "known_hosts": string(known), "password": "hunter2"}, err: "does not open identity"},
		"ssh no identity":      {url: "ssh://git@git.example.com/x", data: map[string]string{"known_hosts": string(known)}, err: "no identity"},
		"ssh no known_hosts":   {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(identity)}, err: "no known_hosts"},
		"ssh broken key":       {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": "hunter2", "known_hosts": string(known)}, err: "not a readable private key"},
		"ssh broken hosts":     {url: "ssh://git@git.example.com/x", data: map[string]string{"identity": string(identity), "known_hosts": "hunter2"}, err: "known_hosts"},
		"file":                 {url: "file:///x", data: map[string]string{"username": "x"}, err: "takes no credentials"},
		"docker":               {url: "oci://registry.example.com/x", data: map[string]string{".dockerconfigjson": docker}},
		"docker broken":        {url: "oci://registry.example.com/x", data: map[string]string{".dockerconfigjson": `{"auths":{"a":{"auth":"hunter2!"}}}`}, err: "not the base64"},
		"docker and more":      {url: "oci://registry.example.com/x", data: map[string]string{".dockerconfigjson": docker, "bearerToken": "hunter2"}, err: "another login"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range c.data {
				data[key] = []byte(value)
			}
			credentials, err := CredentialsOf(c.url, data)
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", credentials, credentials, credentials), "hunter2")
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			requireReason(t, ReasonInvalid, err)
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		err     string
	}{
		"password in the url":  {Options{URL: "https://bot:hunter2@git.example.com/x"}, "password"},
		"user in the url":      {Options{URL: "https://hunter2@git.example.com/x"}, "user name in the url"},
		"scheme":               {Options{URL: "ftp://git.example.com/x"}, "not supported"},
		"scp":                  {Options{URL: "git@git.example.com:x/y"}, ""},
		"no host":              {Options{URL: "https:///x"}, "host and a path"},
		"plain http":           {Options{URL: "http://git.example.com/x", Credentials: Credentials{BearerToken: "hunter2"}}, "plain HTTP"},
		"ssh without a key":    {Options{URL: "ssh://git.example.com/x"}, "identity and known_hosts"},
		"file with a host":     {Options{URL: "file://x/y"}, "three slashes"},
		"query":                {Options{URL: "https://git.example.com/x?token=hunter2"}, "query"},
		"short commit":         {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{Commit: "abc"}}, "40 hexadecimal"},
		"sha256 commit":        {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{Commit: strings.Repeat("a", 64)}}, "SHA-256"},
		"range":                {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{SemVer: "newest"}}, "is not a range"},
		"branch":               {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{Branch: "refs/heads/x"}}, "without refs/"},
		"branch option":        {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{Branch: "--upload-pack=x"}}, "cannot be the name"},
		"digest of git":        {Options{URL: "https://git.example.com/x", Ref: landscapev1alpha1.Reference{Digest: "sha256:x"}}, "OCI"},
		"branch of oci":        {Options{URL: "oci://r.example.com/x", Ref: landscapev1alpha1.Reference{Branch: "x"}}, "Git"},
		"tag in the oci url":   {Options{URL: "oci://r.example.com/x:v1"}, "belongs in ref"},
		"verify oci":           {Options{URL: "oci://r.example.com/x", Verify: &Verification{}}, "verify"},
		"verify without keys":  {Options{URL: "https://git.example.com/x", Verify: &Verification{}}, "no public key"},
		"verify tag of branch": {Options{URL: "https://git.example.com/x", Verify: &Verification{Mode: landscapev1alpha1.VerifyTag}}, "needs ref.tag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewRemote(c.options)
			requireReason(t, ReasonInvalid, err)
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestProxies: connections use only the configured proxy, with its login.
func TestProxies(t *testing.T) {
	root := t.TempDir()
	gittest.New(t, root, "landscape").PushFile("a.yaml", "1", "one")
	server := gittest.ServeTLS(t, root)
	secure := gittest.ServeSSH(t, root)
	var used atomic.Int32
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:hunter2"))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != login {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		used.Add(1)
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		from, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, buffer)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	defer proxy.Close()
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	https, err := CredentialsOf(server.URL, map[string][]byte{"ca.crt": ca})
	require.NoError(t, err)
	key, err := CredentialsOf(secure.URL, map[string][]byte{"identity": secure.Identity, "known_hosts": secure.KnownHosts})
	require.NoError(t, err)
	for address, credentials := range map[string]Credentials{server.URL: https, secure.URL: key} {
		used.Store(0)
		options := Options{URL: address + "/landscape.git", Credentials: credentials}
		resolveAndFetch(t, newTestRemote(t, options))
		assert.Zero(t, used.Load())
		options.Proxy, err = ProxyOf(map[string][]byte{"address": []byte(proxy.URL), "username": []byte("bot"), "password": []byte("hunter2")})
		require.NoError(t, err)
		resolveAndFetch(t, newTestRemote(t, options))
		assert.NotZero(t, used.Load())
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", options.Proxy, options, options), "hunter2")
		options.Proxy, err = ProxyOf(map[string][]byte{"address": []byte(proxy.URL), "username": []byte("bot"), "password": []byte("hunter3")})
		require.NoError(t, err)
		_, err = newTestRemote(t, options).Resolve(t.Context())
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter")
		options.Proxy, options.Credentials.CA = Proxy{}, nil
		if options.Credentials.Identity == nil {
			_, err = newTestRemote(t, options).Resolve(t.Context())
			requireReason(t, ReasonUnreachable, err)
			require.ErrorContains(t, err, "certificate")
		}
	}
	for _, data := range []map[string]string{{}, {"address": "proxy"}, {"address": "ftp://proxy"}, {"address": "http://a:hunter2@proxy"}, {"address": "http://proxy", "password": "hunter2"}} {
		secret := map[string][]byte{}
		for name, value := range data {
			secret[name] = []byte(value)
		}
		_, err := ProxyOf(secret)
		requireReason(t, ReasonInvalid, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}
