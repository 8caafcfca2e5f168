// Package report writes the findings of a validation for people and machines: text with the source
// line, JSON, SARIF and annotations of GitHub. It decides nothing: what is a finding, and of which
// severity, is the matter of schemas.
package report
