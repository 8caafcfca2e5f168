// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/secrets/internal/upstreamhash"
)

const keyKubeconfig = "kubeconfig"

// kubeconfigSecretConfig resolves the references of a request: the CA bundle and the user's
// certificate.
func kubeconfigSecretConfig(c Config, caBundle Value, certificate map[string]Value) upstreamhash.KubeconfigSecretConfig {
	parts := upstreamhash.KubeconfigSecretConfig{
		Name: c.Name, ContextName: textOrDefault(c.ContextName, c.Name), Namespace: c.Namespace,
		Cluster:  clientcmdv1.Cluster{Server: c.Server, CertificateAuthority: c.CAFile, CertificateAuthorityData: caBundle.bytes},
		AuthInfo: clientcmdv1.AuthInfo{TokenFile: c.TokenFile},
	}
	if certificate != nil {
		parts.AuthInfo.ClientCertificateData = certificate[keyTLSCert].bytes
		parts.AuthInfo.ClientKeyData = certificate[keyTLSKey].bytes
	}
	return parts
}

// newKubeconfig has one cluster, user and context, all named after the context.
func newKubeconfig(parts upstreamhash.KubeconfigSecretConfig) (map[string]Value, error) {
	name := parts.ContextName
	config := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters:  []clientcmdv1.NamedCluster{{Name: name, Cluster: parts.Cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: parts.AuthInfo}},
		Contexts: []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{
			Cluster: name, AuthInfo: name, Namespace: parts.Namespace,
		}}},
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return nil, errors.New("encoding the kubeconfig failed")
	}
	return map[string]Value{keyKubeconfig: {raw}}, nil
}
