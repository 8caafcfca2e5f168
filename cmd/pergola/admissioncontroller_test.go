// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// TestAdmissionController starts the server from the command line, sends a request, and stops it.
func TestAdmissionController(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	lines, stderr := io.Pipe()
	root := newRoot()
	root.SetErr(stderr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, root, []string{"admission-controller", "--bind-address", "127.0.0.1", "--port", "0", "--health-port", "-1", "--log-level", "debug", "--self-signed", "--ca-file", ca})
		_ = stderr.Close()
	}()
	log := bufio.NewScanner(lines)
	require.True(t, log.Scan())
	var serving struct{ Msg, Webhooks string }
	require.NoError(t, json.Unmarshal(log.Bytes(), &serving), log.Text())
	require.Equal(t, "serving", serving.Msg, log.Text())
	rest := make(chan string, 1)
	go func() {
		var all strings.Builder
		for log.Scan() {
			all.WriteString(log.Text() + "\n")
		}
		rest <- all.String()
	}()

	authority, err := os.ReadFile(ca)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	response, err := (&http.Client{Transport: transport}).Post("https://"+serving.Webhooks+"/validate", "application/json", strings.NewReader(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
		"kind":{"group":"core.gardener.cloud","version":"v1beta1","kind":"ExposureClass"},
		"object":{"apiVersion":"core.gardener.cloud/v1beta1","kind":"ExposureClass","metadata":{"name":"a"},"handler":"Not A Name"}}}`))
	require.NoError(t, err)
	var review admissionv1.AdmissionReview
	require.NoError(t, json.NewDecoder(response.Body).Decode(&review))
	require.NoError(t, response.Body.Close())
	transport.CloseIdleConnections()
	assert.False(t, review.Response.Allowed)
	assert.Equal(t, "handler", review.Response.Result.Details.Causes[0].Field)

	cancel()
	assert.Equal(t, exitOK, <-code)
	assert.Contains(t, <-rest, `"msg":"stopped"`)
}

func TestAdmissionConfiguration(t *testing.T) {
	out := pergola(t, "admission-controller", "configuration", "--cluster", "virtual", "--service", "garden/pergola-admission-controller:8443")
	require.Equal(t, exitOK, out.code, out.stderr)
	documents := strings.Split(out.stdout, "---\n")
	require.Len(t, documents, 3)
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &validating))
	assert.Equal(t, "ValidatingWebhookConfiguration", validating.Kind)
	service := validating.Webhooks[0].ClientConfig.Service
	assert.Equal(t, "garden/pergola-admission-controller:8443/validate", fmt.Sprintf("%s/%s:%d%s", service.Namespace, service.Name, *service.Port, *service.Path))
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[2]), &mutating))
	assert.Equal(t, "/default", *mutating.Webhooks[0].ClientConfig.Service.Path)

	out = pergola(t, "admission-controller", "configuration", "--url", "https://127.0.0.1:2750", "-o", "json")
	require.Equal(t, exitOK, out.code, out.stderr)
	var list struct {
		Items []struct{ Kind string }
	}
	require.NoError(t, json.Unmarshal([]byte(out.stdout), &list))
	assert.Len(t, list.Items, 2)
}

func TestAdmissionUsage(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no certificate"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "--self-signed and --ca-file"},
		{[]string{"--log-level", "loud"}, `--log-level "loud": want one of info, debug, error`},
		{[]string{"--self-signed"}, "--self-signed needs --ca-file"},
		{[]string{"--tls-cert-file", text}, "need each other"},
		{[]string{"--tls-cert-file", text, "--tls-private-key-file", text, "--self-signed"}, "exclude each other"},
		{[]string{"--tls-cert-file", text, "--tls-private-key-file", text}, "reading the certificate"},
		{[]string{"--self-signed", "--ca-file", filepath.Join(text, "ca.crt")}, "writing the CA of the certificate"},
		{[]string{"--kubeconfig", text}, "--kubeconfig " + text},
		{[]string{"configuration"}, "give one of them"},
		{[]string{"configuration", "--url", "http://a"}, "must be like https://HOST:PORT"},
		{[]string{"configuration", "--cluster", "other", "--url", "https://a"}, "want one of runtime, virtual"},
		{[]string{"configuration", "--service", "a"}, "want NAMESPACE/NAME"},
		{[]string{"configuration", "--service", "a/b:c"}, "the port must be a number"},
		{[]string{"configuration", "--url", "https://a", "--ca-file", text}, "--ca-file " + text},
		{[]string{"configuration", "--url", "https://a", "--ca-file", text + "s"}, "no such file"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			out := pergola(t, append([]string{"admission-controller"}, c.args...)...)
			assert.Equal(t, exitUsage, out.code)
			assert.Contains(t, out.stderr, c.want)
		})
	}
}
