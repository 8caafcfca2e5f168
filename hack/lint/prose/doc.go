// SPDX-License-Identifier: Apache-2.0

// Command prose checks how Pergola is written: comments, messages, Markdown and commit subjects.
// The rules are those of CONTRIBUTING.md; rules.go lists them.
//
// Without arguments it checks the files that Git tracks and the commits since the first one that
// the rule about subjects holds for. With arguments it checks these files and folders. It prints
// file:line: rule: text, and ends with 1 if there is a finding.
package main
