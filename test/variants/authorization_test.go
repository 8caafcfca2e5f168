// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStructuredAuthorization: the webhook of the AuthorizationConfiguration is asked about users
// that match its condition, unless RBAC allows them. It is reached by the kubeconfig in a Secret of
// the project.
func TestStructuredAuthorization(t *testing.T) {
	p := connectShoot(t, shootSecretbox)
	p.ensureNamespace(t, authorizedNamespace)
	p.ensureNamespace(t, "not-"+authorizedNamespace)
	client := p.clientWithToken(t, issueToken(t, env.keys.issuer, nil))
	// the API server fetches the issuer's keys asynchronously
	pollUntil(t, func(ctx context.Context) error {
		_, err := whoAmI(ctx, client)
		return err
	})
	meta := metav1.ObjectMeta{GenerateName: "written-"}
	written, err := client.CoreV1().ConfigMaps(authorizedNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err, "nothing else than the webhook gives this right")

	_, err = client.CoreV1().ConfigMaps("not-"+authorizedNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	err = client.CoreV1().ConfigMaps(authorizedNamespace).Delete(t.Context(), written.Name, metav1.DeleteOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "the webhook has its reasons")
	require.NoError(t, p.apiClient.CoreV1().ConfigMaps(authorizedNamespace).Delete(t.Context(), written.Name, metav1.DeleteOptions{}), "RBAC comes first")

	bodies, err := env.server.requestsTo("/authorize")
	require.NoError(t, err)
	require.NotEmpty(t, bodies)
	for _, body := range bodies {
		var review struct{ Spec struct{ User string } }
		require.NoError(t, json.Unmarshal(body, &review))
		assert.Equal(t, "variants:somebody", review.Spec.User, "the condition names nobody else")
	}
}
