// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// deliveryKind is the kind of a delivery.
type deliveryKind int

const (
	kindOther deliveryKind = iota
	kindPing
	kindPush
)

// pushEvent has the relevant fields of a delivery; their names are similar on all forges.
type pushEvent struct {
	Ref   string `json:"ref"`
	After string `json:"after"`
	// GitLab
	UserUsername string `json:"user_username"`
	// GitHub; in Gitea and Forgejo it is login or username
	Pusher struct {
		Name     string `json:"name"`
		Login    string `json:"login"`
		Username string `json:"username"`
	} `json:"pusher"`
	// hmac
	Commit string `json:"commit"`
	By     string `json:"by"`
}

var commitHashPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// maxNesting bounds the nesting of a delivery.
const maxNesting = 64

// parsePush returns the push and kind of a delivery.
func parsePush(receiver landscapev1alpha1.ReceiverType, header http.Header, body []byte) (Push, deliveryKind, error) {
	var event string
	switch receiver {
	case landscapev1alpha1.ReceiverGitHub:
		event = header.Get("X-Github-Event")
	case landscapev1alpha1.ReceiverGitea, landscapev1alpha1.ReceiverForgejo:
		if event = header.Get("X-Gitea-Event"); event == "" {
			event = header.Get("X-Forgejo-Event")
		}
	case landscapev1alpha1.ReceiverGitLab:
		event = map[string]string{"Push Hook": "push", "Tag Push Hook": "push"}[header.Get("X-Gitlab-Event")]
	default:
		event = "push"
		if header.Get("X-Pergola-Event") == "ping" {
			event = "ping"
		}
	}
	switch event {
	case "ping":
		return Push{}, kindPing, nil
	case "push":
	default:
		return Push{}, kindOther, nil
	}
	if receiver == landscapev1alpha1.ReceiverHMAC && len(bytes.TrimSpace(body)) == 0 {
		return Push{}, kindPush, nil
	}
	body, err := jsonPayload(header, body)
	if err != nil {
		return Push{}, kindOther, err
	}
	var m pushEvent
	if err := decodeBounded(body, &m); err != nil {
		return Push{}, kindOther, err
	}
	if receiver != landscapev1alpha1.ReceiverHMAC && m.Ref == "" {
		return Push{}, kindOther, errors.New("a push without a ref")
	}
	commit := m.After
	if receiver == landscapev1alpha1.ReceiverHMAC {
		commit = m.Commit
	}
	if !commitHashPattern.MatchString(commit) || strings.Trim(commit, "0") == "" {
		commit = ""
	}
	by := m.By
	for _, name := range []string{m.UserUsername, m.Pusher.Login, m.Pusher.Username, m.Pusher.Name} {
		if by == "" {
			by = name
		}
	}
	return Push{Ref: boundedText(m.Ref, 255), Commit: commit, Pusher: boundedText(by, 100)}, kindPush, nil
}

// jsonPayload extracts JSON from a form, which GitHub and Gitea send if configured so.
func jsonPayload(header http.Header, body []byte) ([]byte, error) {
	if !strings.HasPrefix(header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return body, nil
	}
	req := http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: http.NoBody}
	req.Body = readCloser{bytes.NewReader(body)}
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	if text := req.PostForm.Get("payload"); text != "" {
		return []byte(text), nil
	}
	return nil, errors.New("a form without a payload")
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// decodeBounded decodes JSON with bounded nesting.
func decodeBounded(body []byte, into *pushEvent) error {
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == '{' || c == '['):
			if depth++; depth > maxNesting {
				return errors.New("nested too deeply")
			}
		case !text && (c == '}' || c == ']'):
			depth--
		}
	}
	return json.Unmarshal(body, into)
}

// boundedText truncates foreign text and removes control characters.
func boundedText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// isFollowed reports whether a pushed ref can change the revision that the Landscape follows. A
// request without a ref always can.
func isFollowed(ref landscapev1alpha1.Reference, pushed string) bool {
	branch, isBranch := strings.CutPrefix(pushed, "refs/heads/")
	tag, isTag := strings.CutPrefix(pushed, "refs/tags/")
	switch {
	case pushed == "":
		return true
	case !isBranch && !isTag:
		return false
	case ref.Commit != "": // any push may contain it, or a push of its branch
		return ref.Branch == "" || isBranch && branch == ref.Branch
	case ref.SemVer != "":
		return isTag
	case ref.Tag != "":
		return isTag && tag == ref.Tag
	case ref.Branch != "":
		return isBranch && branch == ref.Branch
	}
	return isBranch && branch == "main"
}
