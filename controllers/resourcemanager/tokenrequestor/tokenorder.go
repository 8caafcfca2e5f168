// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Annotations and data keys of the contract.
// Source: pkg/apis/resources/v1alpha1.
const (
	annotationName       = "serviceaccount.resources.gardener.cloud/name"
	annotationNamespace  = "serviceaccount.resources.gardener.cloud/namespace"
	annotationLabels     = "serviceaccount.resources.gardener.cloud/labels"
	annotationExpiration = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
	annotationInjectCA   = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
	annotationTargetName = "token-requestor.resources.gardener.cloud/target-secret-name"
	annotationTargetNS   = "token-requestor.resources.gardener.cloud/target-secret-namespace"

	// AnnotationRenew is when to renew the token, in RFC 3339. Removing it renews the token at
	// once.
	AnnotationRenew = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"

	keyToken      = "token"
	keyKubeconfig = "kubeconfig"
	keyBundle     = "bundle.crt"
)

// defaultExpiration is the lifetime of tokens of Secrets that do not set one.
const defaultExpiration = 12 * time.Hour

// tokenRequest is the request of a Secret.
type tokenRequest struct {
	account    types.NamespacedName
	labels     map[string]string
	expiration time.Duration
	injectCA   bool
	// target is the Secret in the target cluster that gets the token instead of this one, if it has
	// a name.
	target types.NamespacedName
}

// parseTokenRequest parses annotations. targetNamespace, if set, is the namespace of the account.
func parseTokenRequest(annotations map[string]string, targetNamespace string) (tokenRequest, error) {
	o := tokenRequest{
		account:    types.NamespacedName{Namespace: annotations[annotationNamespace], Name: annotations[annotationName]},
		expiration: defaultExpiration,
	}
	if targetNamespace != "" {
		o.account.Namespace = targetNamespace
	}
	var problems []error
	if o.account.Name == "" {
		problems = append(problems, fmt.Errorf("annotation %s is missing: it names the ServiceAccount", annotationName))
	}
	if o.account.Namespace == "" {
		problems = append(problems, fmt.Errorf("annotation %s is missing: it names the namespace of the ServiceAccount", annotationNamespace))
	}
	if text := annotations[annotationLabels]; text != "" {
		if err := json.Unmarshal([]byte(text), &o.labels); err != nil {
			problems = append(problems, fmt.Errorf("annotation %s is not a JSON object of strings: %w", annotationLabels, err))
		}
	}
	if text, ok := annotations[annotationExpiration]; ok {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("annotation %s is not a duration such as 12h: %w", annotationExpiration, err))
		case d < time.Second:
			problems = append(problems, fmt.Errorf("annotation %s is %s: want a duration such as 12h", annotationExpiration, d))
		}
		o.expiration = d
	}
	// As in upstream, an invalid boolean is false, and a target without name or namespace is
	// ignored.
	o.injectCA, _ = strconv.ParseBool(annotations[annotationInjectCA])
	if name, namespace := annotations[annotationTargetName], annotations[annotationTargetNS]; name != "" && namespace != "" {
		o.target = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return o, errors.Join(problems...)
}
