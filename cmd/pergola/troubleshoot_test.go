// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMessagesOfTroubleshoot checks that the sources have each message that the tables of
// docs/howto/troubleshoot.md quote.
func TestMessagesOfTroubleshoot(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/howto/troubleshoot.md"))
	require.NoError(t, err)
	texts := readSourceTexts(t)
	assert.Greater(t, len(quotedMessages(string(page))), 30, "the tables are not found")
	for _, message := range quotedMessages(string(page)) {
		assert.Empty(t, texts.missingFragments(message), "docs/howto/troubleshoot.md quotes `%s`, which no source has", message)
	}

	for message, missing := range map[string][]string{
		"revision \"…\": not found in …":   nil,
		"revision \"…\": not founded in …": {"not founded in"},
		"WebhookDenied":                    nil,
		"WebhookDen":                       {"WebhookDen"},
	} {
		assert.Equal(t, missing, texts.missingFragments(message), message)
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// quotedMessages returns the code spans in the first column of the tables of a page.
func quotedMessages(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		row, is := strings.CutPrefix(line, "| ")
		if !is {
			continue
		}
		cell, _, _ := strings.Cut(row, " | ")
		for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
			out = append(out, span[1])
		}
	}
	return out
}

// sourceTexts are the texts of the sources: string literals of Go files, and CUE files.
type sourceTexts struct {
	literals map[string]bool
	all      string
}

// missingFragments returns the parts of a message between its placeholders that no source has. A
// message of one word has to be a whole literal.
func (s sourceTexts) missingFragments(message string) []string {
	if !strings.ContainsAny(message, " …") {
		if s.literals[message] {
			return nil
		}
		return []string{message}
	}
	var out []string
	for part := range strings.SplitSeq(message, "…") {
		if part = strings.Trim(part, ` ":,;.`); !strings.Contains(s.all, part) {
			out = append(out, part)
		}
	}
	return out
}

// readSourceTexts reads the sources of the program, without tests and tools.
func readSourceTexts(t *testing.T) sourceTexts {
	t.Helper()
	out, all := sourceTexts{literals: map[string]bool{}}, strings.Builder{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "hack" || name == "testdata") {
			return fs.SkipDir
		}
		extension := filepath.Ext(path)
		if entry.IsDir() || extension != ".go" && extension != ".cue" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if extension == ".cue" {
			all.Write(data)
			return nil
		}
		for _, text := range stringLiterals(data) {
			out.literals[text] = true
			all.WriteString(text + "\n")
		}
		return nil
	}))
	out.all = all.String()
	return out
}

// stringLiterals returns the strings of a Go file. Literals that a plus joins are one string.
func stringLiterals(data []byte) []string {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(data)), data, nil, 0)
	var out []string
	var last, beforeLast token.Token
	for {
		_, found, text := s.Scan()
		switch {
		case found == token.EOF:
			return out
		case found == token.STRING:
			text, _ = strconv.Unquote(text)
			if last == token.ADD && beforeLast == token.STRING {
				out[len(out)-1] += text
			} else {
				out = append(out, text)
			}
		}
		beforeLast, last = last, found
	}
}
