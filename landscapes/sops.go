// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/logging"
	sopsyaml "github.com/getsops/sops/v3/stores/yaml"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/schemas"
)

// sopsField is the field with the SOPS metadata in every document of a file.
const sopsField = "sops"

// init silences the SOPS library, which logs undecryptable values, plain ones included, to standard
// error. Findings replace its messages and never quote a value.
func init() {
	for _, logger := range logging.Loggers {
		logger.SetOutput(io.Discard)
	}
}

// decrypt replaces the encrypted content of a file by plain content, or by placeholders without a
// matching key. SOPS signs a file as a whole, so it is decrypted as a whole.
func (l *loader) decrypt(name string, data []byte, contents []parsedObject) []parsedObject {
	encrypted := false
	for i := range contents {
		if _, ok := contents[i].object[sopsField]; ok {
			encrypted = true
			contents[i].secret = SecretEncrypted
		}
	}
	if !encrypted {
		return contents
	}
	if !l.checkEncrypted(name, contents) {
		data = nil // already reported, and more precisely than by decryption
	}
	branches, err := decryptFile(data, l.opts.AgeIdentities)
	if err != nil && !errors.Is(err, errNoKey) {
		l.report(name, sopsLine(contents), 1, "landscape/sops", schemas.TypeInvalid, "%s", err)
	}
	if err == nil && len(branches) != len(contents) {
		l.report(name, 1, 1, "landscape/sops", schemas.TypeInvalid, "every document of an encrypted file must be an object")
		err = errNoKey
	}
	for i := range contents {
		c := &contents[i]
		if c.secret != SecretEncrypted {
			continue
		}
		c.recipients = recipientsOf(c.object)
		delete(c.object, sopsField)
		c.sealed = runtime.DeepCopyJSON(c.object)
		if err == nil {
			c.object, c.secret = plainMap(branches[i]), SecretDecrypted
		} else {
			clearCiphertext(c.object)
		}
	}
	return contents
}

func sopsLine(contents []parsedObject) int {
	for _, c := range contents {
		if place := c.tree().child(sopsField); place != nil {
			return place.key.Line
		}
	}
	return 1
}

// errNoKey reports that no key opens the file.
var errNoKey = errors.New("no key opens the file")

// decryptFile returns the plain documents; errNoKey without data. Errors never contain a value.
func decryptFile(data []byte, identities []age.Identity) (sops.TreeBranches, error) {
	if len(data) == 0 {
		return nil, errNoKey
	}
	store := sopsyaml.NewStore(&config.YAMLStoreConfig{})
	tree, err := store.LoadEncryptedFile(data)
	if err != nil {
		return nil, errors.New("the SOPS metadata cannot be read; encrypt the file again with `sops --encrypt`")
	}
	if err := checkAgeKeys(tree.Metadata); err != nil {
		return nil, err
	}
	key, err := dataKey(&tree, identities)
	if err != nil {
		return nil, err
	}
	cipher := aes.NewCipher()
	mac, err := tree.Decrypt(key, cipher)
	if err != nil {
		return nil, errors.New("a value cannot be decrypted: it was changed after it was encrypted, or moved to another field")
	}
	wanted, err := cipher.Decrypt(tree.Metadata.MessageAuthenticationCode, key, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil || wanted != mac {
		return nil, errors.New("the signature (sops.mac) does not match: the file was changed after encryption; revert and repeat the change with `sops FILE`, or sign it with `sops --ignore-mac FILE`")
	}
	return tree.Branches, nil
}

// dataKey opens the key of the file with one of the identities. It never reads the environment.
func dataKey(tree *sops.Tree, identities []age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		// SOPS itself searches the environment and the home directory for keys
		return nil, errNoKey
	}
	damaged := false
	for _, group := range tree.Metadata.KeyGroups {
		for _, master := range group {
			ageKey, ok := master.(*sopsage.MasterKey)
			if !ok {
				continue
			}
			sopsage.ParsedIdentities(identities).ApplyToMasterKey(ageKey)
			if key, err := ageKey.Decrypt(); err == nil {
				return key, nil
			}
			damaged = damaged || isRecipient(identities, ageKey.Recipient)
		}
	}
	if damaged {
		return nil, errors.New("the data key of a given age key (sops.age[].enc) is damaged, so the file is unreadable; restore it from Git, or run `sops --encrypt`")
	}
	return nil, errNoKey
}

// isRecipient reports whether one of the identities belongs to a recipient.
func isRecipient(identities []age.Identity, recipient string) bool {
	return slices.Contains(publicKeys(identities), recipient)
}

// publicKeys returns the recipients of identities. It skips unknown types.
func publicKeys(identities []age.Identity) []string {
	var out []string
	for _, identity := range identities {
		switch own := identity.(type) {
		case *age.X25519Identity:
			out = append(out, own.Recipient().String())
		case *age.HybridIdentity:
			out = append(out, own.Recipient().String())
		}
	}
	return out
}

// plainMap converts a decrypted document to the content of an object.
func plainMap(branch sops.TreeBranch) map[string]any {
	result := make(map[string]any, len(branch))
	for _, item := range branch {
		if _, comment := item.Key.(sops.Comment); !comment {
			result[fmt.Sprint(item.Key)] = plainContent(item.Value)
		}
	}
	return result
}

func plainContent(value any) any {
	switch v := value.(type) {
	case sops.TreeBranch:
		return plainMap(v)
	case []any:
		var list []any
		for _, item := range v {
			if _, comment := item.(sops.Comment); !comment {
				list = append(list, plainContent(item))
			}
		}
		return list
	case int:
		return int64(v)
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return value
}

// clearCiphertext empties encrypted values in place: ciphertext must not look like a value.
func clearCiphertext(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = clearCiphertext(v[name])
		}
	case []any:
		for i := range v {
			v[i] = clearCiphertext(v[i])
		}
	case string:
		if isEncrypted(v) {
			return ""
		}
	}
	return value
}

// hasCiphertext reports whether SOPS encrypted any value: metadata alone hide nothing.
func hasCiphertext(sealed map[string]any) bool {
	found := false
	walkScalars(sealed, nil, func(path []string, _ func() *positionTree, value any) {
		text, ok := value.(string)
		found = found || ok && isEncrypted(text)
	}, nil)
	return found
}

func isEncrypted(text string) bool { return strings.HasPrefix(text, "ENC[AES256_GCM,") }

// checkSecret sets the SecretState of a Secret, and reports values that everyone can read.
func (l *loader) checkSecret(d *Declaration) {
	if d.Secret == "" {
		before := len(l.violations)
		if l.reportCiphertext(d); len(l.violations) > before {
			return
		}
	}
	isSecret := d.kind == corev1.SchemeGroupVersion.WithKind("Secret")
	switch {
	case !isSecret && d.Secret != "":
		l.reportField(d, sopsField, schemas.TypeForbidden, "landscape/sops", "only Secrets may be encrypted: other objects must be readable in a review, and without a key")
		d.Secret = ""
	case isSecret && (d.Secret == "" || !hasCiphertext(d.EncryptedContent())):
		if d.Secret == "" {
			d.Secret = SecretPlain
		}
		for _, field := range []string{"data", "stringData"} {
			if values, ok := d.Object().Object[field].(map[string]any); ok && len(values) > 0 {
				l.reportField(d, field, schemas.TypeForbidden, "landscape/secret-not-encrypted",
					"the values are readable for everyone who can read the repository; encrypt the file with SOPS, and renew the values")
				l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
				return
			}
		}
	}
}
