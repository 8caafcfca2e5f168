// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"bytes"
	"fmt"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/forge"
)

// Destination is a Notification of a Landscape with the data of its Secret.
type Destination struct {
	Name string
	Type landscapev1alpha1.NotificationType
	// Provider is the provider of the forge of a commit status: github, gitlab, gitea or forgejo.
	Provider string
	// URL is the URL of the webhook, or of the forge or its API; "" means the forge at the host of
	// Event.SourceURL.
	URL string
	// Token is the access to the forge, or the signing key of the webhook.
	Token []byte
	// CA has trusted certificates besides the system's, as PEM.
	CA []byte
	// Severity is the minimum that a webhook sends; "" is info.
	Severity Severity
}

// Destinations reads the notifications of a Landscape. secret returns the data of a Secret in its
// namespace. Each unusable notification is an error and left out.
func Destinations(source string, notifications []landscapev1alpha1.Notification, secret func(name string) (map[string][]byte, error)) ([]Destination, []error) {
	var out []Destination
	var errs []error
	for _, n := range notifications {
		d := Destination{Name: n.Name, Type: n.Type, Provider: n.Provider, URL: n.URL, Severity: Severity(n.Severity)}
		if n.SecretRef != nil {
			data, err := secret(n.SecretRef.Name)
			if err != nil {
				errs = append(errs, fmt.Errorf("notification %q: reading Secret %q: %w", n.Name, n.SecretRef.Name, err))
				continue
			}
			d.Token, d.CA = bytes.TrimSpace(data["token"]), data["ca.crt"]
		}
		if n.Type == landscapev1alpha1.NotifyCommitStatus && len(d.Token) == 0 {
			errs = append(errs, fmt.Errorf("notification %q: a commit status needs a secretRef to a Secret with the key token", n.Name))
			continue
		}
		if n.Type == landscapev1alpha1.NotifyCommitStatus {
			if _, _, err := forge.LocateRepository(source, n.URL); err != nil {
				errs = append(errs, fmt.Errorf("notification %q: a commit status cannot be set: %w", n.Name, err))
				continue
			}
		}
		out = append(out, d)
	}
	return out, errs
}
