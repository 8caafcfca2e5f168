// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// metrics returns the metrics of the API server.
func (p *controlPlaneClient) metrics(t *testing.T) string {
	t.Helper()
	text, err := p.apiClient.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	return string(text)
}

// TestFeatureGates: with the feature gate, and only with it, the API server supports CBOR.
func TestFeatureGates(t *testing.T) {
	skipIfNotRunning(t)
	for shoot, on := range map[string]bool{shootSecretbox: true, shootWithAdmission: false} {
		p := connectShoot(t, shoot)
		want, status := "0", http.StatusNotAcceptable
		if on {
			want, status = "1", http.StatusOK
		}
		assert.Regexp(t, `(?m)^kubernetes_feature_enabled\{name="CBORServingAndStorage",stage="ALPHA"\} `+want+`$`, p.metrics(t), shoot)
		assert.Regexp(t, `(?m)^kubernetes_feature_enabled\{name="UnauthenticatedHTTP2DOSMitigation",stage="BETA"\} 0$`, p.metrics(t), "which a gateway that ends TLS needs")
		var got int
		p.apiClient.Discovery().RESTClient().Get().AbsPath("/api/v1/namespaces/default").SetHeader("Accept", "application/cbor").Do(t.Context()).StatusCode(&got)
		assert.Equal(t, status, got, shoot)
	}
}

// TestEventTTL: events have their declared TTL, in the etcd for events.
func TestEventTTL(t *testing.T) {
	skipIfNotRunning(t)
	for name, test := range map[string]struct {
		plane *controlPlaneClient
		ttl   time.Duration
	}{
		"a Shoot":    {connectShoot(t, shootAESGCM), 2 * time.Hour},
		"the Garden": {connectGarden(t), 3 * time.Hour},
		"by default": {connectShoot(t, shootSecretbox), time.Hour},
	} {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}, InvolvedObject: corev1.ObjectReference{Kind: "Namespace", Namespace: "default", Name: "default"}}
		event, err := test.plane.apiClient.CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{})
		require.NoError(t, err, name)
		etcd := test.plane.etcd(t, "events")
		lease := etcd.get("/registry/events/default/" + event.Name).lease
		require.NotZero(t, lease, name)
		// Events written within a short time share a lease.
		granted := time.Duration(etcd.leaseTTL(lease)) * time.Second
		assert.GreaterOrEqual(t, granted, test.ttl, name)
		assert.Less(t, granted, test.ttl+15*time.Minute, name)
	}
}

var seatLimitPattern = regexp.MustCompile(`(?m)^apiserver_flowcontrol_nominal_limit_seats\{.*\} (\S+)$`)

// TestRequestLimits: concurrent requests are limited to the sum of both limits, which the priority
// levels share.
func TestRequestLimits(t *testing.T) {
	skipIfNotRunning(t)
	for name, test := range map[string]struct {
		plane *controlPlaneClient
		limit float64
	}{
		"a Shoot": {connectShoot(t, shootAESGCM), 1000}, "the Garden": {connectGarden(t), 1500}, "by default": {connectShoot(t, shootSecretbox), 600},
	} {
		sum := 0.0
		for _, match := range seatLimitPattern.FindAllStringSubmatch(test.plane.metrics(t), -1) {
			n, err := strconv.ParseFloat(match[1], 64)
			require.NoError(t, err)
			sum += n
		}
		assert.InDelta(t, test.limit, sum, 10, "%s: shares are rounded up", name)
	}
}

// TestSNI: the name with its own certificate uses it; all other names use the generated one.
func TestSNI(t *testing.T) {
	p := connectGarden(t)
	for name, own := range map[string]bool{additionalHostName: true, "api.virtual-garden.local.gardener.cloud": false, "virtual-garden-kube-apiserver.garden.svc": false} {
		roots := x509.NewCertPool()
		if own {
			roots.AddCert(env.keys.authority)
		} else {
			require.True(t, roots.AppendCertsFromPEM(p.config.CAData))
		}
		transport := &http.Transport{Proxy: podNetworkProxy, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
		response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(p.config.Host + "/livez")
		if !assert.NoError(t, err, name) {
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		transport.CloseIdleConnections()
		assert.Equal(t, http.StatusOK, response.StatusCode, name)
		assert.Equal(t, own, response.TLS.PeerCertificates[0].Subject.CommonName == additionalHostName, name)
	}
}

// TestKubernetesVersions: API servers have their declared versions.
func TestKubernetesVersions(t *testing.T) {
	skipIfNotRunning(t)
	for shoot, minor := range map[string]int{shootAESGCM: 33, shootHighlyAvailable: 34, shootSecretbox: 35, shootWithAdmission: 36} {
		p := connectShoot(t, shoot)
		got, err := p.apiClient.Discovery().ServerVersion()
		require.NoError(t, err, shoot)
		assert.Equal(t, fmt.Sprintf("1.%d", minor), emulatedVersion(got), shoot)
	}
}

// TestAPIServerStartsOnce: an API server of a Shoot starts once, with the address of its Service.
func TestAPIServerStartsOnce(t *testing.T) {
	skipIfNotRunning(t)
	if os.Getenv(clusterFolderVariable) != "" {
		t.Skip("the landscape was converged more than once")
	}
	for _, shoot := range []string{shootAESGCM, shootSecretbox, shootWithAdmission, shootHighlyAvailable} {
		p := connectShoot(t, shoot)
		deployment, err := p.hostClient.AppsV1().Deployments(p.namespace).Get(t.Context(), "kube-apiserver", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "1", deployment.Annotations["deployment.kubernetes.io/revision"], shoot)
		_, rest, _ := strings.Cut(p.serviceAddress(t, "kube-apiserver"), ".")
		assert.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--advertise-address=240."+rest, shoot)
	}
}

// emulatedVersion returns the version that an API server emulates.
func emulatedVersion(v *version.Info) string {
	if v.EmulationMinor != "" {
		return v.EmulationMajor + "." + v.EmulationMinor
	}
	return v.Major + "." + v.Minor
}
