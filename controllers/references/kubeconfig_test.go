// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// TestKubeconfigsOfUsers checks that a user's kubeconfig runs nothing and reads no files on the
// seed, and that no error quotes it.
func TestKubeconfigsOfUsers(t *testing.T) {
	kubeconfig := func(cluster, user string) string {
		return "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://hook.example.org', " + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n" +
			"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	}
	const webhook = "spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName"
	for name, c := range map[string]struct{ field, text, wrong string }{
		"a token":               {webhook, kubeconfig("certificate-authority-data: c2VjcmV0", "token: secret"), ""},
		"a certificate":         {webhook, kubeconfig("", "client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0"), ""},
		"nobody":                {webhook, kubeconfig("insecure-skip-tls-verify: true", ""), ""},
		"a program":             {webhook, kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: secret, interactiveMode: Never}"), "it runs a program"},
		"a provider":            {webhook, kubeconfig("", "auth-provider: {name: secret}"), "it runs code of a provider"},
		"a file with a token":   {webhook, kubeconfig("", "tokenFile: /var/run/secret"), "it refers to files"},
		"a file with a key":     {webhook, kubeconfig("", "client-certificate-data: c2VjcmV0, client-key: /srv/secret"), "it refers to files"},
		"a file of authorities": {webhook, kubeconfig("certificate-authority: /srv/secret", "token: a"), "it refers to a file"},
		"another user":          {webhook, kubeconfig("", "token: a, as: secret"), "it impersonates another user"},
		"no kubeconfig":         {webhook, "secret: [", "is not a kubeconfig"},
		"for an extension":      {"spec.resources[0].resourceRef.name", kubeconfig("", "tokenFile: /var/run/secret"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(c.text))}}}
			err := checkKubeconfig(crosscheck.ConfigReference{Kind: "Secret", Name: "a", Fields: []string{c.field}}, secret)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}
