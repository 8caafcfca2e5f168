// SPDX-License-Identifier: Apache-2.0

// Package report writes the findings of a validation: text with source lines, JSON, SARIF and
// GitHub annotations. Package schemas decides about findings and severities.
package report
