// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDialByName connects to an etcd by address although its certificate has only a name, like
// certificates of Services.
func TestDialByName(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"main-client.garden.svc"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	server, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer server.Close()
	trusted := make(chan struct{})
	go func() {
		for { // a client may abandon connections and try others
			connection, err := server.Accept()
			if err != nil {
				return
			}
			// a client that does not trust it sends nothing
			if _, err = connection.Read(make([]byte, 1)); err == nil {
				close(trusted)
				return
			}
			connection.Close()
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(made)
	m, err := dial(t.Context(), "https://main-client.garden.svc:2379", server.Addr().String(), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer m.Close()
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() { _, _ = m.List(limited) }()
	select {
	case <-trusted:
	case <-limited.Done():
		t.Fatal("nobody has connected")
	}
}
