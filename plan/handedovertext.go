// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// HandedOverText formats a handed-over field as one line.
func HandedOverText(h change.HandedOver) string {
	has := fmt.Sprintf("is %v", h.Live)
	if h.Live == nil {
		has = "is not set"
	}
	text := fmt.Sprintf("%s on %s: %s %s, Git has %v", h.Object, h.Cluster, h.Path, has, h.Declared)
	if h.Manager != "" {
		text += ", set by " + h.Manager
	}
	if h.LastWrite != nil {
		text += " (" + h.LastWrite.UTC().Format(time.RFC3339) + ")"
	}
	return redact.Text(text + ": " + h.Reason)
}

// PrintHandedOver writes one line per handed-over field, and nothing without fields.
func PrintHandedOver(w io.Writer, fields []change.HandedOver) error {
	if len(fields) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("Handed over to controllers, whose values stay:\n")
	for _, f := range fields {
		b.WriteString("  " + HandedOverText(f) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
