// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"bytes"
	"errors"
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// kubeconfig is a parsed kubeconfig with user and cluster of its current context.
type kubeconfig struct {
	config  clientcmdv1.Config
	user    *clientcmdv1.AuthInfo
	cluster *clientcmdv1.Cluster
}

// readKubeconfig decodes YAML or JSON. Its errors contain none of the content.
func readKubeconfig(raw []byte) (*kubeconfig, error) {
	k := &kubeconfig{}
	if yaml.Unmarshal(raw, &k.config) != nil {
		return nil, errors.New("data.kubeconfig is not a kubeconfig")
	}
	for _, c := range k.config.Contexts {
		if c.Name != k.config.CurrentContext {
			continue
		}
		for i := range k.config.AuthInfos {
			if k.config.AuthInfos[i].Name == c.Context.AuthInfo {
				k.user = &k.config.AuthInfos[i].AuthInfo
			}
		}
		for i := range k.config.Clusters {
			if k.config.Clusters[i].Name == c.Context.Cluster {
				k.cluster = &k.config.Clusters[i].Cluster
			}
		}
		if k.user == nil {
			return nil, errors.New("data.kubeconfig has no user that its current context names")
		}
		return k, nil
	}
	return nil, errors.New("data.kubeconfig has no context of its current-context")
}

// errNoCluster means that a CA bundle has no cluster to go to.
var errNoCluster = errors.New("data.kubeconfig has no cluster that its current context names")

// readTokenState reads the data of a Secret. bundle is the requested CA bundle; nil is none.
func readTokenState(data map[string][]byte, bundle []byte) (tokenState, error) {
	raw, ok := data[keyKubeconfig]
	if !ok {
		return tokenState{token: string(data[keyToken]), bundleDiffers: bundle != nil && !bytes.Equal(data[keyBundle], bundle)}, nil
	}
	k, err := readKubeconfig(raw)
	if err != nil {
		return tokenState{}, err
	}
	if bundle != nil && k.cluster == nil {
		return tokenState{}, errNoCluster
	}
	return tokenState{token: k.user.Token, bundleDiffers: bundle != nil && !bytes.Equal(k.cluster.CertificateAuthorityData, bundle)}, nil
}

// dataWithToken returns the keys to change for a token in a Secret; nil values are removed.
func dataWithToken(data map[string][]byte, token string, bundle []byte) (map[string][]byte, error) {
	raw, ok := data[keyKubeconfig]
	if !ok {
		return map[string][]byte{keyToken: []byte(token), keyBundle: bundle}, nil
	}
	k, err := readKubeconfig(raw)
	if err != nil {
		return nil, err
	}
	k.user.Token = token
	if bundle != nil {
		if k.cluster == nil {
			return nil, errNoCluster
		}
		k.cluster.CertificateAuthorityData = bundle
	}
	if raw, err = yaml.Marshal(k.config); err != nil {
		// the text of the error could contain parts of the content
		return nil, fmt.Errorf("writing the kubeconfig: %T", err)
	}
	return map[string][]byte{keyKubeconfig: raw}, nil
}

// dataWithoutToken returns the keys to remove if the token is in another Secret.
func dataWithoutToken() map[string][]byte {
	return map[string][]byte{keyToken: nil, keyBundle: nil, keyKubeconfig: nil}
}
