package tokenrequestor

import (
	"bytes"
	"errors"
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// kubeconfig is one with what its current context names.
type kubeconfig struct {
	config  clientcmdv1.Config
	user    *clientcmdv1.AuthInfo
	cluster *clientcmdv1.Cluster
}

// readKubeconfig decodes one, YAML or JSON. Its errors have nothing of the content.
func readKubeconfig(raw []byte) (*kubeconfig, error) {
	k := &kubeconfig{}
	if yaml.Unmarshal(raw, &k.config) != nil {
		return nil, errors.New("data.kubeconfig is no kubeconfig")
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
			return nil, errors.New("data.kubeconfig has no user of the name that its current context says")
		}
		return k, nil
	}
	return nil, errors.New("data.kubeconfig has no context of the name of its current context")
}

// errNoCluster is of a kubeconfig that a CA bundle is to be written to.
var errNoCluster = errors.New("data.kubeconfig has no cluster of the name that its current context says")

// holds reads what the data of a Secret have. bundle is the CA bundle that is asked for; nil is
// none.
func holds(data map[string][]byte, bundle []byte) (held, error) {
	raw, ok := data[keyKubeconfig]
	if !ok {
		return held{token: string(data[keyToken]), bundleDiffers: bundle != nil && !bytes.Equal(data[keyBundle], bundle)}, nil
	}
	k, err := readKubeconfig(raw)
	if err != nil {
		return held{}, err
	}
	if bundle != nil && k.cluster == nil {
		return held{}, errNoCluster
	}
	return held{token: k.user.Token, bundleDiffers: bundle != nil && !bytes.Equal(k.cluster.CertificateAuthorityData, bundle)}, nil
}

// filled gives the keys that change when a token goes into the data of a Secret; nil values go.
func filled(data map[string][]byte, token string, bundle []byte) (map[string][]byte, error) {
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
		// its text could be of the content
		return nil, fmt.Errorf("writing the kubeconfig: %T", err)
	}
	return map[string][]byte{keyKubeconfig: raw}, nil
}

// emptied gives the keys that go when the token is in another Secret.
func emptied() map[string][]byte {
	return map[string][]byte{keyToken: nil, keyBundle: nil, keyKubeconfig: nil}
}
