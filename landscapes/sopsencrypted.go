// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/getsops/sops/v3"
	sopsage "github.com/getsops/sops/v3/age"

	"github.com/pergola-dev/pergola/schemas"
)

// wholeFileMessage is advice about a file whose apiVersion or kind is encrypted, too.
const wholeFileMessage = "the file is encrypted as a whole, but apiVersion, kind and metadata must be readable; " +
	"decrypt it with `sops --decrypt`, and encrypt it with `sops --encrypt --encrypted-regex '^(data|stringData)$'`"

// signatureMessage is advice about a file without a signature: it was truncated, or edited without
// SOPS.
const signatureMessage = "the signature (sops.mac) is damaged or missing, so the file cannot be decrypted; restore it from Git, or encrypt the file again with `sops --encrypt`"

// checkEncrypted reports values that no key can decrypt, or that must not be encrypted. It needs no
// key, so that a file has the same verdict with and without one. It returns whether it found
// nothing.
func (l *loader) checkEncrypted(name string, contents []parsedObject) bool {
	if !l.checkMetadata(name, contents) {
		return false
	}
	sound := true
	ciphertexts := map[string]string{} // by ciphertext: the field that contains it
	for i := range contents {
		sound = l.checkValues(name, &contents[i], ciphertexts) && sound
		sound = !l.reportPlainComments(name, contents[i]) && sound
	}
	return sound
}

// checkMetadata reports documents whose metadata differ from those of the file. SOPS decrypts and
// signs a file by the metadata of the first document, and writes the same ones to all.
func (l *loader) checkMetadata(name string, contents []parsedObject) bool {
	sound := true
	var first any
	for _, c := range contents {
		metadata, has := c.object[sopsField]
		switch {
		case !has:
			l.report(name, c.line, c.column, "landscape/sops", schemas.TypeInvalid,
				"this document has no SOPS metadata (sops:), so the file cannot be decrypted; put it into its own file, or add it with `sops FILE`")
			sound = false
		case first == nil:
			first = metadata
			// In a truncated file the rest is missing, too: the selection of values, and other
			// documents.
			if fields, ok := metadata.(map[string]any); ok && fields["mac"] == nil && !isIdentityEncrypted(c.object) {
				at := c.fieldPosition(sopsField)
				l.report(name, at.Line, at.Column, "landscape/sops", schemas.TypeInvalid, signatureMessage)
				sound = false
			}
		case !reflect.DeepEqual(first, metadata):
			at := c.fieldPosition(sopsField)
			l.report(name, at.Line, at.Column, "landscape/sops", schemas.TypeInvalid,
				"the documents have different SOPS metadata (sops:), so the file cannot be decrypted; put each into its own file")
			sound = false
		}
	}
	return sound
}

// checkValues reports plain values that should be encrypted, and encrypted values that no one can
// use.
func (l *loader) checkValues(name string, c *parsedObject, ciphertexts map[string]string) bool {
	metadata, _ := c.object[sopsField].(map[string]any)
	wanted, err := encryptionSelector(metadata)
	if err != nil {
		l.report(name, c.line, c.column, "landscape/sops", schemas.TypeInvalid, "%s", err)
		return false
	}
	if isIdentityEncrypted(c.object) || wanted != nil && wanted([]string{"apiVersion"}) && wanted([]string{"kind"}) {
		c.unreadable = isIdentityEncrypted(c.object)
		l.report(name, c.line, c.column, "landscape/sops", schemas.TypeForbidden, "%s", wholeFileMessage)
		return false
	}
	sound := true
	walkScalars(c.object, nil, func(path []string, at func() *positionTree, value any) {
		if value == "" || value == nil || path[0] == sopsField {
			return
		}
		typ, message := encryptedValueProblem(path, value, wanted)
		if text, ok := value.(string); ok && message == "" && isEncrypted(text) {
			field := strings.Join(path, ".")
			if other := ciphertexts[text]; other != "" && other != field {
				typ, message = schemas.TypeInvalid, "is the encrypted value of "+other+", which cannot be decrypted in another field: edit the file with `sops FILE`"
			}
			ciphertexts[text] = field
		}
		if message == "" {
			return
		}
		sound = false
		line, column := c.line, c.column
		if place := at(); place != nil {
			line, column = place.position.Line, place.position.Column
		}
		l.report(name, line, column, "landscape/sops", typ, "%s %s", strings.Join(path, "."), message)
	}, c.tree)
	return sound
}

// isIdentityEncrypted reports whether the kind or name of an object, or of an item of a List, is
// encrypted.
func isIdentityEncrypted(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	for _, value := range []any{object["apiVersion"], object["kind"], metadata["name"], metadata["namespace"]} {
		if text, ok := value.(string); ok && isEncrypted(text) {
			return true
		}
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if one, ok := item.(map[string]any); ok && isIdentityEncrypted(one) {
			return true
		}
	}
	return false
}

// encryptedValueProblem describes the fault of a value in an encrypted file, or returns empty
// strings. wanted is nil if the selection of SOPS is unknown.
func encryptedValueProblem(path []string, value any, wanted func([]string) bool) (schemas.ViolationType, string) {
	text, _ := value.(string)
	if !isEncrypted(text) {
		if wanted != nil && wanted(path) {
			return schemas.TypeForbidden, "is not encrypted, but the SOPS metadata require it: edit the file with `sops FILE`, and renew the value"
		}
		return "", ""
	}
	kind, ok := ciphertextKind(text)
	switch {
	case !ok:
		return schemas.TypeInvalid, "is damaged: it does not have the form ENC[AES256_GCM,data:…,iv:…,tag:…,type:…], so it cannot be decrypted; restore it from Git"
	case wanted != nil && !wanted(path):
		return schemas.TypeInvalid, "is encrypted, but the SOPS metadata do not select it, so it would stay encrypted: edit the file with `sops FILE`"
	case !isSecretField(pathInItem(path)[0]):
		return schemas.TypeForbidden, "is encrypted, but only data and stringData of a Secret may be: encrypt the file with `sops --encrypt --encrypted-regex '^(data|stringData)$'`"
	case kind != "str":
		return schemas.TypeTypeInvalid, "must be text, but is encrypted as " + kindNames[kind] + ": put the value in quotes, with `sops FILE`"
	}
	return "", ""
}

var ciphertextPattern = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.*),iv:(.+),tag:(.+),type:([a-z]+)\]$`)

// kindNames maps the value types of SOPS, which are not encrypted, to words for messages.
var kindNames = map[string]string{
	"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "bytes": "bytes", "time": "a date", "comment": "a comment",
}

// ciphertextKind returns the type of an encrypted value, or false if it is invalid.
func ciphertextKind(text string) (string, bool) {
	parts := ciphertextPattern.FindStringSubmatch(text)
	if parts == nil || kindNames[parts[4]] == "" {
		return "", false
	}
	for _, part := range parts[1:4] {
		if _, err := base64.StdEncoding.DecodeString(part); err != nil {
			return "", false
		}
	}
	return parts[4], true
}

// pathInItem returns a path relative to its object, which may be an item of a List.
func pathInItem(path []string) []string {
	for len(path) > 1 && path[0] == "items" {
		path = path[1:]
	}
	return path
}

// checkAgeKeys returns an error for a file that no age key can open.
func checkAgeKeys(metadata sops.Metadata) error {
	if metadata.ShamirThreshold > 1 {
		return errors.New("the file needs keys of several groups (shamir_threshold), which is not supported")
	}
	if _, ok := ciphertextKind(metadata.MessageAuthenticationCode); !ok {
		return errors.New(signatureMessage)
	}
	var others []string
	damaged, ageKeys := 0, 0
	for _, group := range metadata.KeyGroups {
		for _, master := range group {
			key, ok := master.(*sopsage.MasterKey)
			if !ok {
				others = append(others, master.TypeToIdentifier())
				continue
			}
			ageKeys++
			if !isCompleteAgeFile(key.EncryptedKey) {
				damaged++
			}
		}
	}
	switch {
	case ageKeys == 0:
		return fmt.Errorf("the file is encrypted only for keys of %s; Pergola opens age keys: add one with `sops --rotate --in-place --add-age RECIPIENT FILE`", strings.Join(others, ", "))
	case damaged == ageKeys:
		return errors.New("the data key for an age key (sops.age[].enc) is damaged, so the file is unreadable; restore it from Git, or encrypt it again with `sops --encrypt`")
	}
	return nil
}

// isCompleteAgeFile reports whether a text is a complete age file, which the right key opens.
func isCompleteAgeFile(enc string) bool {
	var noMatch *age.NoIdentityMatchError
	_, err := age.Decrypt(armor.NewReader(strings.NewReader(enc)), keylessIdentity{})
	if !errors.As(err, &noMatch) {
		return false
	}
	_, err = io.ReadAll(armor.NewReader(strings.NewReader(enc))) // read the whole body
	return err == nil
}

// keylessIdentity is an identity without a key.
type keylessIdentity struct{}

func (keylessIdentity) Unwrap([]*age.Stanza) ([]byte, error) { return nil, age.ErrIncorrectIdentity }

// recipientsOf returns the age keys that a file is encrypted for, in their public form.
func recipientsOf(object map[string]any) []string {
	metadata, _ := object[sopsField].(map[string]any)
	keys, _ := metadata["age"].([]any)
	var out []string
	for _, key := range keys {
		fields, _ := key.(map[string]any)
		if recipient, ok := fields["recipient"].(string); ok {
			out = append(out, recipient)
		}
	}
	return out
}
