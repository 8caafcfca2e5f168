// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

func unsignedJWT(payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(payload)) + "." + encode([]byte("none"))
}

func kubeconfigWithUser(user string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: garden
contexts: [{name: garden, context: {cluster: garden, user: me}}]
clusters: [{name: garden, cluster: {server: "https://garden.example.org", certificate-authority-data: QQ==}}]
users: [{name: me, user: {` + user + `}}]
`)
}

// TestRenewalTime checks that the claims of the token decide when access is renewed, and that
// no error quotes the token.
func TestRenewalTime(t *testing.T) {
	const account = `"sub":"system:serviceaccount:garden:gardenlet-local"`
	began := time.Unix(1_700_000_000, 0)
	for name, test := range map[string]struct {
		raw     []byte
		due     time.Time
		fails   string
		foreign bool
	}{
		"after four fifths":           {raw: kubeconfigWithUser("token: " + unsignedJWT(`{`+account+`,"iat":1700000000,"exp":1700001000}`)), due: began.Add(800 * time.Second)},
		"a token that does not end":   {raw: kubeconfigWithUser("token: " + unsignedJWT(`{`+account+`}`))},
		"a token of somebody else":    {raw: kubeconfigWithUser("token: " + unsignedJWT(`{"sub":"jane"}`)), foreign: true},
		"no token of this sort":       {raw: kubeconfigWithUser("token: secret-value"), foreign: true},
		"a certificate":               {raw: kubeconfigWithUser("client-certificate-data: QQ=="), foreign: true},
		"a token that is none":        {raw: kubeconfigWithUser("token: a.secret-value.c"), fails: "its token cannot be read"},
		"no kubeconfig":               {raw: []byte("secret-value: ["), fails: "the kubeconfig cannot be read"},
		"a kubeconfig without access": {raw: []byte("{apiVersion: v1, kind: Config}"), fails: "the kubeconfig has no current context"},
		"nothing":                     {fails: "the kubeconfig has no current context"},
	} {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Namespace: "garden", Name: "gardenlet-garden"}
			secrets := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{KubeconfigKey: test.raw}})
			own := TokenRenewer{Connection: LazyConfig(RegisteredSeedSource(key, nil, clocktesting.NewFakePassiveClock(began))), Secrets: secrets}
			due, err := own.RenewalTime(t.Context())
			if test.fails == "" && !test.foreign {
				require.NoError(t, err)
				assert.True(t, test.due.Equal(due), due)
				return
			}
			require.ErrorContains(t, err, "access to the virtual garden, Secret garden/gardenlet-garden: "+test.fails)
			assert.NotContains(t, err.Error(), "secret-value")
			assert.Equal(t, test.foreign, errors.Is(err, ErrNotRenewable))
		})
	}
	_, err := TokenRenewer{Connection: LazyConfig(RegisteredSeedSource(types.NamespacedName{Namespace: "garden", Name: "none"}, nil, nil)), Secrets: fake.NewClientset()}.RenewalTime(t.Context())
	assert.EqualError(t, err, "access to the virtual garden does not exist yet: Secret garden/none is created with the registration of the seed")
	assert.True(t, IsMissing(err))
}
