// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	hash   = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32"
	header = "tree " + hash + "\nparent " + hash + "\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n"
)

func TestPayloadOfCommits(t *testing.T) {
	signed := header + "gpgsig " + openPGPStart + "\n \n abc\n -----END PGP SIGNATURE-----\nencoding x\n\ntext\n\ngpgsig no header\n"
	payload, sign, err := commitPayload([]byte(signed))
	require.NoError(t, err)
	assert.Equal(t, header+"encoding x\n\ntext\n\ngpgsig no header\n", string(payload))
	assert.Equal(t, openPGPStart+"\n\nabc\n-----END PGP SIGNATURE-----\n", string(sign))
	for name, raw := range map[string]string{
		"nothing":             "",
		"unsigned":            header + "\ntext\n",
		"signed in the text":  header + "\ngpgsig " + openPGPStart + "\n",
		"no tree first":       "x y\n" + signed,
		"two trees":           "tree " + hash + "\n" + signed,
		"two authors":         strings.Replace(signed, "author", "author A\nauthor", 1),
		"two committers":      strings.Replace(signed, "committer", "committer A\ncommitter", 1),
		"two signatures":      strings.Replace(signed, "encoding", "gpgsig", 1),
		"another name for it": strings.Replace(signed, "encoding", "gpgsig-sha256", 1),
	} {
		_, _, err := commitPayload([]byte(raw))
		require.Error(t, err, name)
	}
}

func TestPayloadOfTags(t *testing.T) {
	tag := "object " + hash + "\ntype commit\ntag v1\ntagger A <a> 1 +0000\n\ntext\n"
	signed := tag + sshStart + "\nabc\n"
	payload, sign, err := tagPayload([]byte(signed), "v1", hash)
	require.NoError(t, err)
	assert.Equal(t, tag, string(payload))
	assert.Equal(t, sshStart+"\nabc\n", string(sign))
	payload, _, err = tagPayload([]byte(tag+openPGPStart+"\nquoted\n"+sshStart+"\nabc\n"), "v1", hash)
	require.NoError(t, err)
	assert.Contains(t, string(payload), "quoted", "the last signature counts")
	for name, raw := range map[string]string{
		"unsigned":       tag,
		"another name":   strings.Replace(signed, "v1", "v2", 1),
		"another commit": strings.Replace(signed, hash, strings.Repeat("1", 40), 1),
		"of a tree":      strings.Replace(signed, "type commit", "type tree", 1),
		"two objects":    "object " + strings.Repeat("1", 40) + "\n" + signed,
	} {
		_, _, err := tagPayload([]byte(raw), "v1", hash)
		require.Error(t, err, name)
	}
}

func TestRejectedKeys(t *testing.T) {
	for name, c := range map[string][2]string{
		"nothing":        {"", "no public key"},
		"private":        {"-----BEGIN OPENSSH PRIVATE KEY-----\n", "private key"},
		"text":           {"hello", "neither an armored OpenPGP key"},
		"text and more":  {"hello world again", "neither an armored OpenPGP key"},
		"broken armour":  {"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxx\n-----END PGP PUBLIC KEY BLOCK-----\n", "not a readable OpenPGP public key"},
		"an authority":   {"a cert-authority ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3nrzNhhyHBnGwmfyW1bVYKqPh0gTSuQAWR5yXzJ2mu", "cert-authority"},
		"unknown option": {"a sudo=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3nrzNhhyHBnGwmfyW1bVYKqPh0gTSuQAWR5yXzJ2mu", "not known"},
		"no time":        {"a valid-before=\"soon\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3nrzNhhyHBnGwmfyW1bVYKqPh0gTSuQAWR5yXzJ2mu", "is not a time"},
	} {
		_, err := ReadKeys(map[string][]byte{"file": []byte(c[0])})
		require.ErrorContains(t, err, c[1], name)
	}
}
