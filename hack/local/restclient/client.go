// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Client is a client of one API server (or etcd) with a client certificate.
type Client struct {
	server string
	http   *http.Client
}

// Files are the PEM files of a connection.
type Files struct {
	// CA verifies the server.
	CA string
	// Cert and Key identify the client.
	Cert, Key string
}

// New returns a client; it does not connect yet.
func New(server string, files Files) (*Client, error) {
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading certificate authority %s: it contains no certificate", files.CA)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("reading client certificate: %w", err)
	}
	// No proxy: the server is on loopback.
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 5 * time.Second,
	}
	return &Client{server: server, http: &http.Client{Transport: transport, Timeout: 20 * time.Second}}, nil
}

// StatusError is an error response.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	path    string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", e.path, e.Code, e.Reason, e.Message)
}

// IsNotFound reports whether the error is a response that the object or path does not exist.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Get reads path into out, which may be nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, "", nil, out)
}

// Apply sends the object by server-side apply, as the field manager "pergola-local", with force.
func (c *Client) Apply(ctx context.Context, path string, object any) error {
	return c.Do(ctx, http.MethodPatch, path+"?fieldManager=pergola-local&force=true", "application/apply-patch+yaml", object, nil)
}

// Delete deletes the object; a missing object is not an error.
func (c *Client) Delete(ctx context.Context, path string) error {
	if err := c.Do(ctx, http.MethodDelete, path, "", nil, nil); err != nil && !IsNotFound(err) {
		return err
	}
	return nil
}

// Do sends one request with a JSON body, which may be nil, and decodes the JSON response into out,
// which may be nil. Responses other than 2xx are a StatusError.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body, out any) error {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding request to %s: %w", path, err)
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, reader)
	if err != nil {
		return fmt.Errorf("preparing request to %s: %w", path, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("calling API server: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading answer of %s: %w", path, err)
	}
	if response.StatusCode/100 != 2 {
		return newStatusError(path, response.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decoding answer of %s: %w", path, err)
	}
	return nil
}

// Stream streams the response of a GET until it ends.
func (c *Client) Stream(ctx context.Context, path string, out io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return fmt.Errorf("preparing request to %s: %w", path, err)
	}
	// without the timeout of other requests
	response, err := (&http.Client{Transport: c.http.Transport}).Do(request)
	if err != nil {
		return fmt.Errorf("calling API server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("reading answer of %s: %w", path, err)
		}
		return newStatusError(path, response.StatusCode, data)
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		return fmt.Errorf("reading answer of %s: %w", path, err)
	}
	return nil
}

func newStatusError(path string, code int, body []byte) *StatusError {
	status := &StatusError{}
	if json.Unmarshal(body, status) != nil || status.Message == "" {
		status.Message = string(bytes.TrimSpace(body))
	}
	status.Code, status.path = code, path
	return status
}
