// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// dataReport reads maps of plain or base64 values, and collects findings about keys and sizes. No
// message may ever contain a value, which can belong to a Secret.
type dataReport struct {
	findings []finding
	keys     map[string]string // first field that has the key, by key
	size     int
}

func (d *dataReport) add(path fieldpath.Path, typ ViolationType, format string, args ...any) {
	d.findings = append(d.findings, finding{path: path.String(), typ: typ, message: fmt.Sprintf(format, args...)})
}

// addValues adds one field. The structural check reports values that are not text or not base64.
func (d *dataReport) addValues(object map[string]any, field string, encoded bool) map[string]any {
	values, _ := object[field].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if words := dataKeyProblem(key); words != "" {
			d.add(fieldpath.Path{field, fieldpath.Key(key)}, TypeInvalid, "the key %q %s", key, words)
		}
		value, _ := values[key].(string)
		if !encoded {
			d.size += len(value)
		} else if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
			d.size += len(plain)
		}
		if d.keys == nil {
			d.keys = map[string]string{}
		}
		if d.keys[key] == "" {
			d.keys[key] = field
		}
	}
	return values
}

func dataKeyProblem(key string) string {
	switch {
	case len(utilvalidation.IsConfigMapKey(key)) == 0:
		return ""
	case len(key) > utilvalidation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("has %d characters, but may have at most %d", len(key), utilvalidation.DNS1123SubdomainMaxLength)
	case key == "." || strings.HasPrefix(key, ".."):
		return "cannot be the name of a file: it must not be \".\" or begin with \"..\""
	}
	return "cannot be the name of a file: only letters, digits, '-', '_' and '.' are allowed"
}

// checkSize reports data that is too large for one object.
func (d *dataReport) checkSize() {
	if d.size > corev1.MaxSecretSize {
		d.add(fieldpath.Path{"data"}, TypeTooLong, "the values have %d bytes together, but may have at most %d (1 MiB); split them over several objects", d.size, corev1.MaxSecretSize)
	}
}

func checkConfigMapData(in ruleInput) []finding {
	d := &dataReport{}
	plain := d.addValues(in.object, "data", false)
	binary := d.addValues(in.object, "binaryData", true)
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		if _, double := plain[key]; double {
			d.add(fieldpath.Path{"binaryData", fieldpath.Key(key)}, TypeDuplicate, "the key %q is in data, too; a key may be in only one of them", key)
		}
	}
	d.checkSize()
	return d.findings
}

func checkSecretData(in ruleInput) []finding {
	d := &dataReport{}
	encoded := d.addValues(in.object, "data", true)
	plain := d.addValues(in.object, "stringData", false)
	for key := range plain { // stringData wins over data
		if value, ok := encoded[key].(string); ok {
			if replaced, err := base64.StdEncoding.DecodeString(value); err == nil {
				d.size -= len(replaced)
			}
		}
	}
	d.checkSize()
	d.checkType(in.object)
	return d.findings
}

// checkType requires the keys that belong to the type of a Secret.
func (d *dataReport) checkType(object map[string]any) {
	typ, _ := object["type"].(string)
	switch corev1.SecretType(typ) {
	case corev1.SecretTypeTLS:
		d.requireKey(typ, corev1.TLSCertKey)
		d.requireKey(typ, corev1.TLSPrivateKeyKey)
	case corev1.SecretTypeDockercfg:
		d.requireJSONKey(object, typ, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		d.requireJSONKey(object, typ, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeSSHAuth:
		d.requireKey(typ, corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeBasicAuth:
		if d.keys[corev1.BasicAuthUsernameKey] == "" && d.keys[corev1.BasicAuthPasswordKey] == "" {
			d.requireKey(typ, corev1.BasicAuthUsernameKey)
			d.requireKey(typ, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeServiceAccountToken:
		if name, _, _ := unstructured.NestedString(object, "metadata", "annotations", corev1.ServiceAccountNameKey); name == "" {
			d.add(fieldpath.Path{"metadata", "annotations", fieldpath.Key(corev1.ServiceAccountNameKey)}, TypeRequired,
				"must name the service account, because the type of the Secret is %s", typ)
		}
	}
}

// requireKey requires a key, and reports it at the field that has the other keys.
func (d *dataReport) requireKey(typ, key string) {
	if d.keys[key] != "" {
		return
	}
	field, has := "data", ""
	if others := slices.Sorted(maps.Keys(d.keys)); len(others) > 0 {
		has = "; it has " + strings.Join(others, ", ")
		if !slices.Contains(slices.Collect(maps.Values(d.keys)), field) {
			field = "stringData"
		}
	}
	d.add(fieldpath.Path{field, fieldpath.Key(key)}, TypeRequired, "must be set, because the type of the Secret is %s%s", typ, has)
}

// requireJSONKey requires a key whose value is a JSON object. It accepts empty values, which an
// encrypted Secret has without its key.
func (d *dataReport) requireJSONKey(object map[string]any, typ, key string) {
	d.requireKey(typ, key)
	field := d.keys[key]
	values, _ := object[field].(map[string]any)
	text, _ := values[key].(string)
	if field == "data" {
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return
		}
		text = string(plain)
	}
	if text != "" && json.Unmarshal([]byte(text), &map[string]any{}) != nil {
		d.add(fieldpath.Path{"data", fieldpath.Key(key)}, TypeInvalid, "the value (not shown) is not a JSON object, which the type %s requires", typ)
	}
}
