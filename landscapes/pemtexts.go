// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/schemas"
)

// rulePEM is the rule id of findings about unreadable PEM texts.
const rulePEM = "landscape/pem"

// Patterns of credentials in files, and in values of objects that are not Secrets.
var (
	privateKeyPattern = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|PuTTY-User-Key-File-[0-9]`)
	ageKeyPattern     = regexp.MustCompile(`AGE-SECRET-KEY-(PQ-)?1`)
	// joinedPEMPattern matches a PEM header and its content in one line: YAML joins the lines of a
	// folded or plain text.
	joinedPEMPattern = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----[ \t]*[A-Za-z0-9+/]{16}`)
)

// privateKeyAdvice returns advice about a private key, or an empty string.
func privateKeyAdvice(data []byte) string {
	switch {
	case ageKeyPattern.Match(data):
		return "holds a private age key, so everyone with the repository can decrypt its Secrets; remove the file, and encrypt them again for another key"
	case privateKeyPattern.Match(data):
		return "holds a private key, which everyone with the repository can use; remove the file, and renew the key: the history of the repository keeps it"
	case hasCredentials(data):
		return "is a kubeconfig with credentials, which everyone with the repository can use; remove the file, and renew the credentials: the history keeps them"
	}
	return ""
}

// hasCredentials reports whether a text is a kubeconfig with credentials of a user.
func hasCredentials(data []byte) bool {
	var config struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Users      []struct {
			User map[string]any `yaml:"user"`
		} `yaml:"users"`
	}
	// Most files are not kubeconfigs, and parsing long ones takes time.
	if !kindFieldPattern.Match(data) || yaml.Unmarshal(data, &config) != nil || config.APIVersion != "v1" || config.Kind != "Config" {
		return false
	}
	for _, user := range config.Users {
		for _, field := range []string{"client-key-data", "token", "password"} {
			if value := user.User[field]; value != nil && value != "" {
				return true
			}
		}
	}
	return false
}

// base64PEMStart is the start of a base64-encoded text that begins with `-----BEGIN `.
var base64PEMStart = strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("-----BEGIN ")), "=")[:14]

// canHavePrivateKey reports whether a document may have a text for checkPEMTexts. Visiting all
// values of all objects takes longer.
func canHavePrivateKey(data []byte) bool {
	return bytes.Contains(data, []byte("-----BEGIN ")) || bytes.Contains(data, []byte(base64PEMStart)) || ageKeyPattern.Match(data)
}

// checkPEMTexts warns of values with private keys, and of certificates and keys with joined lines.
// No message contains a value.
func (l *loader) checkPEMTexts(d *Declaration) {
	isSecret := d.kind.Group == "" && d.kind.Kind == "Secret"
	walkScalars(d.Object().Object, nil, func(path []string, at func() *positionTree, value any) {
		text, _ := value.(string)
		if strings.HasPrefix(text, base64PEMStart) {
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				text = string(decoded)
			}
		}
		var rule, message string
		switch {
		case !strings.Contains(text, "-----BEGIN ") && !ageKeyPattern.MatchString(text):
			return
		case !(isSecret && isSecretField(path[0])) && (privateKeyPattern.MatchString(text) || ageKeyPattern.MatchString(text)):
			rule, message = rulePrivateKey, "holds a private key, which everyone with the repository can use; move it to a Secret encrypted with SOPS, and renew the leaked key"
		case joinedPEMPattern.MatchString(text):
			rule, message = rulePEM, "begins like PEM, but its lines were joined, so no program can read it; write the text after |, and keep its line breaks"
		default:
			return
		}
		where := schemas.Position{File: d.File, Line: d.Line, Column: d.Column}
		if place := at(); place != nil {
			where = place.position
		}
		l.violations = append(l.violations, schemas.Violation{
			Severity: schemas.SeverityWarning, File: where.File, Line: where.Line, Column: where.Column, Kind: d.kind.Kind, Namespace: d.namespace, Name: d.name,
			Field: strings.Join(slices.Clone(path), "."), Type: schemas.TypeInvalid, Rule: rule, Message: message,
		})
		// code that prints lines detects "PRIVATE KEY" itself
		if written, _ := value.(string); rule == rulePrivateKey && !strings.Contains(written, "PRIVATE KEY") {
			d.HideLine(&l.violations[len(l.violations)-1])
		}
	}, d.content(useShared).origins[0].tree)
}

// checkPrivateKeys warns of a readable file with a private key. checkPEMTexts checks declarations.
func (l *layer) checkPrivateKeys(name string) bool {
	data, ok := l.fileLoader().readBytes(name)
	if !ok {
		return false
	}
	advice := privateKeyAdvice(data)
	if advice != "" {
		l.report(name, 1, 1, rulePrivateKey, schemas.TypeForbidden, "%s", advice)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
	return advice != ""
}
