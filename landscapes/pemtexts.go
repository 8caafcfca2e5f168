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

// rulePEM is the rule of findings about texts in PEM form that nothing can read.
const rulePEM = "landscape/pem"

// Credentials in files, and in values of objects that are not Secrets.
var (
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|PuTTY-User-Key-File-[0-9]`)
	ageKey     = regexp.MustCompile(`AGE-SECRET-KEY-(PQ-)?1`)
	// joinedPEM begins with a line of PEM and its content in one: YAML joins the lines of a text
	// after `>` and of one without a sign.
	joinedPEM = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----[ \t]*[A-Za-z0-9+/]{16}`)
)

// keyAdvice says what to do about a private key, empty if a text has none.
func keyAdvice(data []byte) string {
	switch {
	case ageKey.Match(data):
		return "holds a private age key: whoever has the repository can decrypt its Secrets; remove the file, and encrypt them anew for another key"
	case privateKey.Match(data):
		return "holds a private key, which everyone who has the repository can use; remove the file, and renew the key: the history of the repository keeps it"
	case holdsCredentials(data):
		return "is a kubeconfig with credentials, which everyone who has the repository can use; remove the file, and renew the credentials: the history of the repository keeps them"
	}
	return ""
}

// holdsCredentials reports whether a text is a kubeconfig by which a user proves who they are.
func holdsCredentials(data []byte) bool {
	var config struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Users      []struct {
			User map[string]any `yaml:"user"`
		} `yaml:"users"`
	}
	// Most files are no kubeconfig, and long ones take time to parse.
	if !namesKind.Match(data) || yaml.Unmarshal(data, &config) != nil || config.APIVersion != "v1" || config.Kind != "Config" {
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

// beginsPEM is how the base64 form of a text begins that begins with `-----BEGIN `.
var beginsPEM = strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("-----BEGIN ")), "=")[:14]

// mentionsKeys reports whether a document can hold a text that checkTexts warns of: to visit all
// values of all objects takes longer.
func mentionsKeys(data []byte) bool {
	return bytes.Contains(data, []byte("-----BEGIN ")) || bytes.Contains(data, []byte(beginsPEM)) || ageKey.Match(data)
}

// checkTexts warns of values that hold private keys, and of certificates and keys whose lines were
// joined. No message has a value.
func (l *loader) checkTexts(d *Declaration) {
	isSecret := d.kind.Group == "" && d.kind.Kind == "Secret"
	walkTexts(d.Object().Object, nil, func(path []string, at func() *place, value any) {
		text, _ := value.(string)
		if strings.HasPrefix(text, beginsPEM) {
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				text = string(decoded)
			}
		}
		var rule, message string
		switch {
		case !strings.Contains(text, "-----BEGIN ") && !ageKey.MatchString(text):
			return
		case !(isSecret && isSecretField(path[0])) && (privateKey.MatchString(text) || ageKey.MatchString(text)):
			rule, message = rulePrivateKey, "holds a private key, which everyone who has the repository can use; put it into a Secret that is encrypted with SOPS, and renew the key: the history of the repository keeps it"
		case joinedPEM.MatchString(text):
			rule, message = rulePEM, "begins like PEM, but its lines were joined to one, so that nothing can read it; write the text after | with each line on its own"
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
		// those are known to who shows lines
		if written, _ := value.(string); rule == rulePrivateKey && !strings.Contains(written, "PRIVATE KEY") {
			d.Hide(&l.violations[len(l.violations)-1])
		}
	}, d.content(toRead).origins[0].tree)
}

// checkKeys warns of a file that everyone can read and that holds a private key. Files of
// declarations are checked by their values.
func (l *layer) checkKeys(name string) bool {
	data, ok := l.part().readBytes(name)
	if !ok {
		return false
	}
	advice := keyAdvice(data)
	if advice != "" {
		l.report(name, 1, 1, rulePrivateKey, schemas.TypeForbidden, "%s", advice)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
	return advice != ""
}
