// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxNameLength leaves room for `-bundle` in a label value.
const maxNameLength = 63 - len("-bundle")

// fieldNames returns the JSON names of all fields of Config.
func fieldNames() []string {
	t := reflect.TypeFor[Config]()
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// fieldsOf returns the fields that apply to a kind.
func fieldsOf(kind Kind) ([]string, bool) {
	common := []string{"name", "kind", "rotation", "ignoreOldSecrets", "ignoreOldSecretsAfter", "persist", "labels"}
	subject := []string{"commonName", "organization", "validity", "renewAfterValidityPercentage"}
	switch kind {
	case KindCA:
		return slices.Concat(common, subject), true
	case KindCertificate:
		return slices.Concat(common, subject, []string{"dnsNames", "ipAddresses", "certType", "signingCA", "useCurrentCA", "useOldCA",
			"skipPublishingCACertificate", "includeCACertificateInServerChain"}), true
	case KindRSAPrivateKey, KindSSHKeypair:
		return append(common, "bits"), true
	case KindEtcdEncryptionKey:
		return append(common, "provider"), true
	case KindStaticToken:
		return append(common, "users"), true
	case KindBasicAuth:
		return append(common, "username", "passwordLength", "validity", "renewAfterValidityPercentage"), true
	case KindKubeconfig:
		return append(common, "contextName", "server", "ca", "caFile", "tokenFile", "clientCertificate", "namespace"), true
	case KindEtcdEncryptionConfiguration:
		return []string{"name", "kind", "labels", "key", "resources", "encryptedResources", "encryptWithCurrentKey"}, true
	case KindWorkloadIdentityDocuments:
		return []string{"name", "kind", "labels", "key", "issuer"}, true
	}
	return nil, false
}

// Validate reports all errors of the request.
func (c Config) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("secret %q: "+format, append([]any{c.Name}, args...)...))
	}
	if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
		add("the name is not valid: %s", strings.Join(problems, "; "))
	} else if len(c.Name) > maxNameLength {
		add("the name is longer than %d characters", maxNameLength)
	}
	if _, ok := fieldsOf(c.Kind); !ok {
		add("unknown kind %q", c.Kind)
	}
	if c.Rotation != "" && c.Rotation != InPlace && c.Rotation != KeepOld {
		add("rotation is %q, expected %s or %s", c.Rotation, InPlace, KeepOld)
	}
	if c.Validity != nil && c.Validity.Duration <= 0 {
		add("validity has to be positive")
	}
	if p := c.RenewAfterValidityPercentage; p < 0 || p > 100 {
		add("renewAfterValidityPercentage is %d, expected 1 to 100", p)
	}
	for key, value := range c.Labels {
		if problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(problems) > 0 {
			add("label %s is not valid: %s", key, strings.Join(problems, "; "))
		}
	}
	c.validateKind(add)
	return errors.Join(errs...)
}

func (c Config) validateKind(add func(string, ...any)) {
	required := func(field, value string) {
		if value == "" {
			add("%s is required for kind %s", field, c.Kind)
		}
	}
	switch c.Kind {
	case KindCA:
		// Upstream has CAs without a subject, and their names depend on that.
	case KindCertificate:
		required("commonName", c.CommonName)
		required("signingCA", c.SigningCA)
		c.validateCertificate(add)
	case KindRSAPrivateKey, KindSSHKeypair:
		if c.Bits != 0 && c.Bits < 1024 {
			add("bits is %d, expected at least 1024", c.Bits)
		}
	case KindEtcdEncryptionKey:
		if c.Provider != "" && !slices.Contains([]string{providerAESCBC, providerAESGCM, providerSecretbox}, c.Provider) {
			add("provider is %q, expected aescbc, aesgcm or secretbox", c.Provider)
		}
	case KindStaticToken:
		c.validateUsers(add)
	case KindKubeconfig:
		if u, err := url.Parse(c.Server); err != nil || u.Scheme != "https" || u.Host == "" {
			add("server is %q, expected an https URL", c.Server)
		}
		if (c.TokenFile == "") == (c.ClientCertificate == "") {
			add("tokenFile or clientCertificate is required")
		}
		if c.CA != "" && c.CAFile != "" {
			add("ca and caFile exclude each other")
		}
	case KindEtcdEncryptionConfiguration:
		required("key", c.Key)
		if len(c.Resources) == 0 {
			add("resources is required for kind %s", c.Kind)
		}
	case KindWorkloadIdentityDocuments:
		required("key", c.Key)
		if u, err := url.Parse(c.Issuer); err != nil || u.Scheme != "https" || u.Host == "" {
			add("issuer is %q, expected an https URL", c.Issuer)
		}
	}
}

func (c Config) validateCertificate(add func(string, ...any)) {
	if !slices.Contains([]CertType{CertServer, CertClient, CertServerClient}, c.CertType) {
		add("certType is %q, expected server, client or serverclient", c.CertType)
	}
	if c.UseCurrentCA && c.UseOldCA {
		add("useCurrentCA and useOldCA exclude each other")
	}
	for _, ip := range c.IPAddresses {
		if net.ParseIP(ip) == nil {
			add("ipAddresses has %q, which is not an IP address", ip)
		}
	}
}

func (c Config) validateUsers(add func(string, ...any)) {
	if len(c.Users) == 0 {
		add("users is required for kind %s", c.Kind)
	}
	seen := map[string]bool{}
	for _, u := range c.Users {
		if u.Username == "" || seen[u.Username] {
			add("users has user %q twice, or without a name", u.Username)
		}
		seen[u.Username] = true
		for _, text := range append([]string{u.Username, u.UserID}, u.Groups...) {
			// The file is read as CSV; groups are one quoted field.
			if strings.ContainsAny(text, ",\"\n\r") {
				add("users: %q has a comma, a quote or a line break", text)
			}
		}
	}
}
