// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// snapshotTimeout is the time limit of a full snapshot.
const snapshotTimeout = 5 * time.Minute

// Backup is the process beside an etcd that backs it up (etcd-backup-restore).
type Backup struct {
	// Address is where it listens, "SERVICE.NAMESPACE.svc:8080".
	Address string
	// CA signs the certificate of the process; empty means plain HTTP. Certificate is the client
	// certificate.
	CA          []byte
	Certificate *tls.Certificate
	// Proxy and Dial connect to services of the cluster; it is nil for a direct connection.
	Proxy func(*http.Request) (*url.URL, error)
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// TakeSnapshot takes a full snapshot of etcd now: older ones use an encryption key that is about to
// be dropped.
func (b Backup) TakeSnapshot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	transport := &http.Transport{Proxy: b.Proxy, DialContext: b.Dial, DisableKeepAlives: true}
	target := url.URL{Scheme: "http", Host: b.Address, Path: "/snapshot/full"}
	if len(b.CA) > 0 {
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(b.CA) {
			return errors.New("there is no certificate in the bundle of its CA")
		}
		target.Scheme, transport.TLSClientConfig = "https", &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
		if b.Certificate != nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{*b.Certificate}
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for a full snapshot: %w", err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("asking for a full snapshot: %w", err)
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("asking for a full snapshot: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s for a full snapshot: it answers %s", target.String(), answer.Status)
	}
	return nil
}
