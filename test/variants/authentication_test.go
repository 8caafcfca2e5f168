// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// whoAmI returns the user of a client, as the API server identifies it.
func whoAmI(ctx context.Context, client kubernetes.Interface) (authenticationv1.UserInfo, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// issueToken returns a token of the issuer with some different claims.
func issueToken(t *testing.T, key *rsa.PrivateKey, changes map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": env.server.URL + "/issuer", "aud": "variants", "sub": "somebody", "groups": []string{"some"}, "admitted": "yes",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changes)
	text, err := signToken(key, claims)
	require.NoError(t, err)
	return text
}

// TestStructuredAuthentication: tokens of the issuer in the AuthenticationConfiguration are
// accepted, with the user from their claims. All others are rejected.
func TestStructuredAuthentication(t *testing.T) {
	p := connectShoot(t, shootSecretbox)
	made := func(key *rsa.PrivateKey, changes map[string]any) string { return issueToken(t, key, changes) }
	// The API server fetches the issuer's keys asynchronously.
	pollUntil(t, func(ctx context.Context) error {
		user, err := whoAmI(ctx, p.clientWithToken(t, made(env.keys.issuer, nil)))
		if err == nil {
			assert.Equal(t, "variants:somebody", user.Username)
			assert.Equal(t, []string{"variants:some", "system:authenticated"}, user.Groups)
		}
		return err
	})
	for name, text := range map[string]string{
		"another audience":   made(env.keys.issuer, map[string]any{"aud": "kubernetes"}),
		"another issuer":     made(env.keys.issuer, map[string]any{"iss": env.server.URL}),
		"expired":            made(env.keys.issuer, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"a claim is missing": made(env.keys.issuer, map[string]any{"admitted": "no"}),
		"an unknown key":     made(env.keys.unknownKey, nil),
		"no token":           "",
	} {
		_, err := whoAmI(t.Context(), p.clientWithToken(t, text))
		assert.True(t, apierrors.IsUnauthorized(err), "%s: %v", name, err)
	}
}

// TestAuthenticationWebhook: the authentication webhook of the Garden identifies or rejects users.
func TestAuthenticationWebhook(t *testing.T) {
	p := connectGarden(t)
	user, err := whoAmI(t.Context(), p.clientWithToken(t, "known-somebody"))
	require.NoError(t, err)
	assert.Equal(t, "webhook:somebody", user.Username)
	assert.Equal(t, []string{"webhook", "system:authenticated"}, user.Groups)
	_, err = whoAmI(t.Context(), p.clientWithToken(t, "unknown"))
	assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
	bodies, err := env.server.requestsTo("/authenticate")
	require.NoError(t, err)
	require.NotEmpty(t, bodies)
	var review metav1.TypeMeta
	require.NoError(t, json.Unmarshal(bodies[0], &review))
	assert.Equal(t, "authentication.k8s.io/v1", review.APIVersion)
}

// TestAnonymousAccess: anonymous users may read the health of API servers, and nothing else.
func TestAnonymousAccess(t *testing.T) {
	skipIfNotRunning(t)
	for name, p := range map[string]*controlPlaneClient{"a Shoot": connectShoot(t, shootWithAdmission), "the Garden": connectGarden(t)} {
		nobody := p.clientWithToken(t, "").Discovery().RESTClient()
		for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusOK, "/healthz": http.StatusOK, "/version": http.StatusUnauthorized, "/api": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized} {
			var status int
			nobody.Get().AbsPath(path).Do(t.Context()).StatusCode(&status)
			assert.Equal(t, want, status, "%s: %s", name, path)
		}
	}
}
