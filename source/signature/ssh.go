// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	sshMagic = "SSHSIG"
	// sshNamespace is the namespace of Git's signatures: a signature in another one does not sign a
	// commit.
	sshNamespace = "git"
	minRSABits   = 2048
)

// sshKey is a trusted key and its restrictions.
type sshKey struct {
	key         ssh.PublicKey
	principal   string
	namespaces  []string
	validAfter  time.Time
	validBefore time.Time
}

// readSSH parses lines of authorized_keys or allowed_signers.
func (k *Keys) readSSH(data []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parseSSHKey(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		k.sshKeys = append(k.sshKeys, key)
	}
	return lines.Err()
}

func parseSSHKey(line string) (sshKey, error) {
	if first, _, _ := strings.Cut(line, " "); isKeyType(first) {
		key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return sshKey{}, errors.New("it is not an SSH public key")
		}
		return checkStrength(sshKey{key: key, principal: comment})
	}
	// principals [options] type key [comment]. The options have the format of authorized_keys.
	principals, rest, ok := strings.Cut(line, " ")
	if !ok {
		return sshKey{}, errors.New("it is neither an armored OpenPGP key nor an SSH public key")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil {
		return sshKey{}, errors.New("it is neither an armored OpenPGP key nor an SSH public key nor a line of allowed_signers")
	}
	out := sshKey{key: key, principal: strings.Trim(principals, `"`)}
	if out.principal == "" || out.principal == "*" {
		out.principal = comment
	}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			out.namespaces = strings.Split(value, ",")
		case "valid-after":
			out.validAfter, err = parseSignerTime(value)
		case "valid-before":
			out.validBefore, err = parseSignerTime(value)
		case "cert-authority":
			return sshKey{}, errors.New("cert-authority is not supported: name the keys themselves")
		default:
			return sshKey{}, fmt.Errorf("the option %q is not known", name)
		}
		if err != nil {
			return sshKey{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return checkStrength(out)
}

func isKeyType(word string) bool {
	return strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-sha2-") || strings.HasPrefix(word, "sk-")
}

// checkStrength rejects weak keys and certificates.
func checkStrength(key sshKey) (sshKey, error) {
	if _, certificate := key.key.(*ssh.Certificate); certificate {
		return sshKey{}, errors.New("it is a certificate, which is not supported: name the key itself")
	}
	switch key.key.Type() {
	case "ssh-dss":
		return sshKey{}, errors.New("DSA keys are too weak")
	case ssh.KeyAlgoRSA:
		if public, ok := key.key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() < minRSABits {
			return sshKey{}, fmt.Errorf("the RSA key has %d bits and needs %d", public.N.BitLen(), minRSABits)
		}
	}
	return key, nil
}

// parseSignerTime parses YYYYMMDD[HHMM[SS]][Z]. Without Z it is UTC, too, so that the file does not
// depend on the machine's time zone.
func parseSignerTime(text string) (time.Time, error) {
	digits := strings.TrimSuffix(text, "Z")
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if at, err := time.Parse(layout, digits); err == nil && len(layout) == len(digits) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it like 20301231 or 20301231235959Z", text)
}

func (k sshKey) checkValidity(now time.Time) error {
	switch {
	case !k.validAfter.IsZero() && now.Before(k.validAfter):
		return fmt.Errorf("is valid only from %s on", k.validAfter.Format(time.RFC3339))
	case !k.validBefore.IsZero() && !now.Before(k.validBefore):
		return fmt.Errorf("was valid only until %s", k.validBefore.Format(time.RFC3339))
	case len(k.namespaces) > 0 && !isAnyMatch(k.namespaces, sshNamespace):
		return fmt.Errorf("is not trusted for Git, only for %s", strings.Join(k.namespaces, ", "))
	}
	return nil
}

func isAnyMatch(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// sshSignature is a signature in ssh-keygen's format.
type sshSignature struct {
	Version       uint32
	PublicKey     []byte
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     []byte
}

func (k *Keys) verifySSH(payload, sign []byte, now time.Time) (string, error) {
	block, rest := pem.Decode(sign)
	if block == nil || block.Type != "SSH SIGNATURE" || len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(block.Bytes, []byte(sshMagic)) {
		return "", errors.New("its SSH signature is broken")
	}
	var blob sshSignature
	if err := ssh.Unmarshal(block.Bytes[len(sshMagic):], &blob); err != nil || blob.Version != 1 {
		return "", errors.New("its SSH signature is broken")
	}
	public, err := ssh.ParsePublicKey(blob.PublicKey)
	if err != nil {
		return "", errors.New("the key of its SSH signature is broken")
	}
	fingerprint := ssh.FingerprintSHA256(public)
	if blob.Namespace != sshNamespace {
		return "", fmt.Errorf("its signature by the SSH key %s is for %q, not for Git", fingerprint, blob.Namespace)
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(blob.Signature, &signature); err != nil || len(signature.Rest) > 0 && !strings.HasPrefix(signature.Format, "sk-") {
		return "", errors.New("its SSH signature is broken")
	}
	var digest []byte
	switch blob.HashAlgorithm {
	case "sha256":
		sum := sha256.Sum256(payload)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(payload)
		digest = sum[:]
	default:
		return "", fmt.Errorf("its signature is made over the weak hash %q: sha256 or sha512 is needed", blob.HashAlgorithm)
	}
	if signature.Format == ssh.KeyAlgoRSA || signature.Format == "ssh-dss" {
		return "", fmt.Errorf("its signature by the SSH key %s is made by %s, which uses SHA-1: sign again with rsa-sha2-512", fingerprint, signature.Format)
	}
	signed := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, HashAlgorithm string
		Digest                             []byte
	}{blob.Namespace, blob.Reserved, blob.HashAlgorithm, digest})...)
	if err := public.Verify(signed, &signature); err != nil {
		return "", fmt.Errorf("its signature by the SSH key %s is not valid: the signed content was changed", fingerprint)
	}
	refusal := errors.New("is not trusted")
	for _, key := range k.sshKeys {
		if !bytes.Equal(key.key.Marshal(), public.Marshal()) {
			continue
		}
		if refusal = key.checkValidity(now); refusal == nil {
			return strings.TrimSpace(fingerprint + " " + key.principal), nil
		}
	}
	return "", fmt.Errorf("it is signed by the SSH key %s, which %w", fingerprint, refusal)
}
