// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

func secretManifest(data string) string {
	return "{apiVersion: v1, kind: Secret, metadata: {name: s}, " + data + "}"
}

func TestEqualValuesHaveEqualHashes(t *testing.T) {
	m := NewMasking([]byte("key"))
	fields := m.Compare(object(t, secretManifest("stringData: {a: one, b: two, c: one, long: one}")).Object,
		object(t, secretManifest("stringData: {a: two, b: one, c: one, long: '"+strings.Repeat("x", 5000)+"'}")).Object)
	require.Len(t, fields, 3)
	a, b, long := fields[0], fields[1], fields[2]
	assert.Equal(t, a.OldHash, b.NewHash)
	assert.Equal(t, a.NewHash, b.OldHash)
	assert.NotEqual(t, a.OldHash, a.NewHash)
	assert.Len(t, long.NewHash, len(a.OldHash), "the length of a value is secret, too")
	for _, f := range fields {
		assert.True(t, f.Hidden)
		assert.Nil(t, f.Old)
		assert.Nil(t, f.New)
	}

	env := func(v string) map[string]any {
		return object(t, pod(`{containers: [{name: c, env: [{name: DB_PASSWORD, value: `+v+`}]}]}`)).Object
	}
	assert.Equal(t, a.OldHash, m.Compare(env("one"), env("two"))[0].OldHash, "the value that is in a Secret in base64 is told where it is plain")

	again := NewMasking([]byte("key")).Compare(object(t, secretManifest("stringData: {a: one}")).Object, object(t, secretManifest("stringData: {a: two}")).Object)
	assert.Equal(t, a.OldHash, again[0].OldHash, "runs with one key agree")
	for range 3 {
		other := NewMasking(nil).Compare(object(t, secretManifest("stringData: {a: one}")).Object, object(t, secretManifest("stringData: {a: two}")).Object)
		assert.NotEqual(t, a.OldHash, other[0].OldHash)
	}
}

func TestHashesOfAddedAndRemovedValues(t *testing.T) {
	fields := NewMasking([]byte("key")).Compare(object(t, secretManifest("stringData: {gone: x}")).Object, object(t, secretManifest("stringData: {new: x}")).Object)
	require.Len(t, fields, 2)
	assert.Equal(t, fields[0].OldHash, fields[1].NewHash, "a value that moved")
}

func TestEncryptedValuesAreOpaque(t *testing.T) {
	sealed := func(text string) map[string]any {
		return object(t, secretManifest("stringData: {a: 'ENC[AES256_GCM,data:"+text+",iv:AAAA,tag:BBBB,type:str]'}")).Object
	}
	fields := NewMasking([]byte("key")).Compare(sealed("b25l"), sealed("dHdv"))
	assert.Equal(t, []change.Field{{Path: "data.a", Hidden: true, Encrypted: true}}, fields)
	assert.Empty(t, Compare(sealed("b25l"), sealed("b25l")))
	assert.True(t, Compare(sealed("b25l"), object(t, secretManifest("stringData: {a: plain}")).Object)[0].Encrypted)
}

// TestHiddenPartsOfShownValues checks that hidden parts inside a shown value differ visibly.
func TestHiddenPartsOfShownValues(t *testing.T) {
	m := NewMasking([]byte("key"))
	value := func(password, port string) map[string]any {
		return object(t, widgetManifest(fmt.Sprintf(`{args: [--password, %s, --port, %q, "--url=https://bot:%s@example.com"], text: "user: a\npassword: %s\nport: %s"}`, password, port, password, password, port))).Object
	}
	raw, err := json.Marshal(m.Compare(value("hunter2", "1"), value("hunter3", "2")))
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "hunter")
	assert.Contains(t, string(raw), "https://"+m.replacementFor("bot:hunter2")+"@example.com")
	assert.Contains(t, string(raw), `password: `+m.replacementFor("hunter2"))
	assert.Contains(t, string(raw), `password: `+m.replacementFor("hunter3"))
	assert.True(t, isMask(m.replacementFor("x")))
	assert.True(t, isMask(Mask))
	assert.False(t, isMask("(hidden in the text)"))
}

// TestHashesResistGuessing checks that a secret cannot be found by trying all possible values.
func TestHashesResistGuessing(t *testing.T) {
	pin := func(v string) map[string]any { return object(t, secretManifest("stringData: {pin: '"+v+"'}")).Object }
	seen := map[string]bool{}
	for range 20 {
		seen[printFields(t, NewMasking(nil).Compare(pin("1234"), pin("5678")))] = true
	}
	assert.Len(t, seen, 20)
	sum := func(s string) string {
		return pod(`{containers: [{name: c}], template: {metadata: {annotations: {checksum/secret-pin: ` + s + `, checksum/configmap: ` + s + `}}}}`)
	}
	a, b := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	fields := Compare(object(t, sum(a)).Object, object(t, sum(b)).Object)
	require.Len(t, fields, 2)
	assert.Equal(t, b, fields[0].New, "of a ConfigMap it is no secret")
	assert.True(t, fields[1].Hidden)
}
