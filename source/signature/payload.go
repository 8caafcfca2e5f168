// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

const (
	openPGPStart = "-----BEGIN PGP SIGNATURE-----"
	sshStart     = "-----BEGIN SSH SIGNATURE-----"
)

// ErrUnsigned means that there is no signature.
var ErrUnsigned = errors.New("it is not signed")

// commitPayload separates the signature from the signed part of a commit. It rejects ambiguous
// headers.
func commitPayload(raw []byte) (payload, sign []byte, err error) {
	header, body, ok := bytes.Cut(raw, []byte("\n\n"))
	if !ok {
		header, body = bytes.TrimSuffix(raw, []byte("\n")), nil
	}
	seen := map[string]int{}
	inSignature := false
	var kept []string
	var signatureLines []string
	for _, line := range strings.Split(string(header), "\n") {
		if strings.HasPrefix(line, " ") {
			if inSignature {
				signatureLines = append(signatureLines, line[1:])
			} else {
				kept = append(kept, line)
			}
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		seen[name]++
		switch name {
		case "gpgsig":
			inSignature = true
			signatureLines = append(signatureLines, value)
			continue
		case "gpgsig-sha256":
			return nil, nil, errors.New("it has a signature for SHA-256, which is not supported")
		}
		inSignature = false
		kept = append(kept, line)
	}
	for _, name := range []string{"tree", "author", "committer", "gpgsig"} {
		if seen[name] > 1 {
			return nil, nil, fmt.Errorf("it has %d headers %s", seen[name], name)
		}
	}
	if len(kept) == 0 || !strings.HasPrefix(kept[0], "tree ") {
		return nil, nil, errors.New("it does not begin with its tree")
	}
	if seen["gpgsig"] == 0 {
		return nil, nil, ErrUnsigned
	}
	out := strings.Join(kept, "\n") + "\n"
	if ok {
		out += "\n" + string(body)
	}
	return []byte(out), []byte(strings.Join(signatureLines, "\n") + "\n"), nil
}

// tagPayload separates the signature at the end of a tag, and compares the tag's headers with the
// expected ones.
func tagPayload(raw []byte, name, commit string) (payload, sign []byte, err error) {
	start := -1
	for at := 0; at < len(raw); {
		line := raw[at:]
		if bytes.HasPrefix(line, []byte(openPGPStart)) || bytes.HasPrefix(line, []byte(sshStart)) {
			start = at
		}
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	header, _, _ := bytes.Cut(raw, []byte("\n\n"))
	seen := map[string][]string{}
	for _, line := range strings.Split(string(header), "\n") {
		key, value, _ := strings.Cut(line, " ")
		seen[key] = append(seen[key], value)
	}
	for key, want := range map[string]string{"object": commit, "type": "commit", "tag": name} {
		if len(seen[key]) != 1 || seen[key][0] != want {
			return nil, nil, fmt.Errorf("its %s is %q, not %q", key, strings.Join(seen[key], ", "), want)
		}
	}
	if start < 0 {
		return nil, nil, ErrUnsigned
	}
	return raw[:start], raw[start:], nil
}
