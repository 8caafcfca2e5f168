// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// certificateCheckInterval is the shortest interval in which certificate files are checked while
// connections arrive.
const certificateCheckInterval = time.Second

// CertificateFunc returns the certificate for a new connection.
type CertificateFunc func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// certificateFiles reads a certificate and its key from files, and again when they change.
type certificateFiles struct {
	certFile, keyFile string
	log               *slog.Logger
	clock             clock.PassiveClock

	mu        sync.Mutex
	current   *tls.Certificate
	version   [2]fileVersion
	lastCheck time.Time
}

// fileVersion identifies the content of a file without reading it.
type fileVersion struct {
	modTime time.Time
	size    int64
}

// CertificatesFromFiles reads a PEM certificate and key from files, and again when they change.
// While they do not match, as in the middle of a rotation, the last valid pair stays in use.
func CertificatesFromFiles(certFile, keyFile string, log *slog.Logger, clock clock.PassiveClock) (CertificateFunc, error) {
	c := &certificateFiles{certFile: certFile, keyFile: keyFile, log: log, clock: clock}
	version, err := c.fileVersions()
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	if err := c.load(version); err != nil {
		return nil, err
	}
	return c.certificate, nil
}

func (c *certificateFiles) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); now.Sub(c.lastCheck) >= certificateCheckInterval {
		c.lastCheck = now
		version, err := c.fileVersions()
		if err == nil && version != c.version {
			if err = c.load(version); err == nil {
				c.log.Info("the certificate was reloaded", "file", c.certFile)
			}
		}
		if err != nil {
			c.log.Error("cannot reload the certificate; the last one stays in use", "error", err.Error())
		}
	}
	return c.current, nil
}

func (c *certificateFiles) fileVersions() (result [2]fileVersion, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		var info fs.FileInfo
		if info, err = os.Stat(file); err != nil {
			return result, err
		}
		result[i] = fileVersion{info.ModTime(), info.Size()}
	}
	return result, nil
}

func (c *certificateFiles) load(version [2]fileVersion) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the certificate of %s and its key in %s: %w", c.certFile, c.keyFile, err)
	}
	c.current, c.version = &pair, version
	return nil
}

// SelfSignedCertificates creates an authority and a certificate of this process for hosts (names or
// addresses), valid for a year. It writes the authority to a file, as CA bundle for webhook
// configurations.
func SelfSignedCertificates(hosts []string, caFile string) (CertificateFunc, error) {
	if len(hosts) == 0 {
		return nil, errors.New("a certificate needs at least one host name or address")
	}
	var addresses []net.IP
	var names []string
	for _, host := range hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	chain, key, err := certutil.GenerateSelfSignedCertKey(hosts[0], addresses, names)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: pair.Certificate[len(pair.Certificate)-1]})
	if err := writeFile(caFile, authority); err != nil {
		return nil, fmt.Errorf("writing the CA of the certificate: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}

// writeFile replaces a file atomically: readers see the old or the new content.
func writeFile(path string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
