// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var day = 24 * time.Hour

func serverLeaf() Leaf {
	return Leaf{Name: "server", User: "server", Hosts: []string{"127.0.0.1", "localhost"}}
}

// issueLeaves issues the leaves at a time and returns their folder and authority.
func issueLeaves(t *testing.T, path string, now time.Time, leaves ...Leaf) (*Folder, *Authority) {
	t.Helper()
	folder := &Folder{Path: path, Now: now}
	authority, err := folder.Authority("ca")
	require.NoError(t, err)
	for _, leaf := range leaves {
		require.NoError(t, folder.Issue(authority, leaf))
	}
	return folder, authority
}

func TestIssue(t *testing.T) {
	path, now := t.TempDir(), time.Now()
	client := Leaf{Name: "client", User: "somebody", Groups: []string{"system:masters"}}
	folder, authority := issueLeaves(t, path, now, serverLeaf(), client)
	assert.Equal(t, []string{"ca", "server", "client"}, folder.Renewed)

	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	certificate, _, err := folder.load("server")
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		assert.NoError(t, err, host)
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	assert.Error(t, err, "a server is no client")
	certificate, _, err = folder.load("client")
	require.NoError(t, err)
	assert.Equal(t, "somebody", certificate.Subject.CommonName)
	assert.Equal(t, []string{"system:masters"}, certificate.Subject.Organization)

	for _, file := range []string{folder.Key("ca"), folder.Key("server")} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestRenewal(t *testing.T) {
	now := time.Now()
	more := serverLeaf()
	more.Hosts = append(more.Hosts, "other.example")
	for name, test := range map[string]struct {
		spoil   func(*testing.T, *Folder)
		later   time.Duration
		leaf    Leaf
		renewed []string
	}{
		"nothing to do":         {leaf: serverLeaf()},
		"valid for long enough": {later: leafValidity - 31*day, leaf: serverLeaf()},
		"expires soon":          {later: leafValidity - 29*day, leaf: serverLeaf(), renewed: []string{"server"}},
		"expired":               {later: leafValidity + day, leaf: serverLeaf(), renewed: []string{"server"}},
		"authority expired":     {later: authorityValidity, leaf: serverLeaf(), renewed: []string{"ca", "server"}},
		"clock was wrong":       {later: -day, leaf: serverLeaf(), renewed: []string{"ca", "server"}},
		"other hosts":           {leaf: more, renewed: []string{"server"}},
		"broken file":           {spoil: func(t *testing.T, f *Folder) { require.NoError(t, os.WriteFile(f.Cert("server"), []byte("?"), 0o600)) }, leaf: serverLeaf(), renewed: []string{"server"}},
		"key of another":        {spoil: func(t *testing.T, f *Folder) { require.NoError(t, os.Rename(f.Key("ca"), f.Key("server"))) }, leaf: serverLeaf(), renewed: []string{"ca", "server"}},
		"authority lost":        {spoil: func(t *testing.T, f *Folder) { require.NoError(t, os.Remove(f.Cert("ca"))) }, leaf: serverLeaf(), renewed: []string{"ca", "server"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			folder, _ := issueLeaves(t, path, now, serverLeaf())
			if test.spoil != nil {
				test.spoil(t, folder)
			}
			again, _ := issueLeaves(t, path, now.Add(test.later), test.leaf)
			assert.Equal(t, test.renewed, again.Renewed)
		})
	}
}

func TestKeyPair(t *testing.T) {
	folder := &Folder{Path: t.TempDir(), Now: time.Now()}
	require.NoError(t, folder.KeyPair("service-account"))
	require.NoError(t, folder.KeyPair("service-account"))
	assert.Equal(t, []string{"service-account"}, folder.Renewed)
	require.NoError(t, os.Remove(folder.PublicKey("service-account")))
	require.NoError(t, folder.KeyPair("service-account"))
	assert.Len(t, folder.Renewed, 2)
}
