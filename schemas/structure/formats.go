// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"time"
)

const (
	formatDateTime = "date-time"
	formatDuration = "duration"
	formatByte     = "byte"
	formatCIDR     = "cidr"
	formatIPv4     = "ipv4"
	formatIPv6     = "ipv6"
)

// supportedFormats are the checked formats of each type. Definitions with other formats are
// rejected. New supportedFormats also need code in checkFormat and writer.format.
var supportedFormats = map[string][]string{
	"":        {""},
	"object":  {""},
	"array":   {""},
	"boolean": {""},
	"string":  {"", formatDateTime, formatDuration, formatByte, formatCIDR, formatIPv4, formatIPv6},
	"integer": {"", "int32", "int64"},
	"number":  {"", "float", "double"},
}

// checkFormat returns the fault of a text without the format, or "".
func checkFormat(format, text string) string {
	switch format {
	case formatDateTime:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "is not a time such as 2025-01-31T08:00:00Z"
		}
	case formatDuration:
		if _, err := time.ParseDuration(text); err != nil {
			return "is not a duration such as 30s, 10m or 1h30m"
		}
	case formatByte:
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return "is not base64"
		}
	case formatCIDR:
		if _, err := netip.ParsePrefix(text); err != nil {
			return "is not a network range such as 10.250.0.0/16"
		}
	case formatIPv4:
		if address, err := netip.ParseAddr(text); err != nil || !address.Is4() {
			return "is not an IPv4 address such as 10.250.0.1"
		}
	case formatIPv6:
		if address, err := netip.ParseAddr(text); err != nil || !address.Is6() {
			return "is not an IPv6 address such as 2001:db8::1"
		}
	}
	return ""
}

// base64Pattern matches the input of Go's decoder: complete groups, with line breaks anywhere.
const base64Pattern = `^[\r\n]*(([A-Za-z0-9+/][\r\n]*){4})*(([A-Za-z0-9+/][\r\n]*){2}=[\r\n]*=[\r\n]*|([A-Za-z0-9+/][\r\n]*){3}=[\r\n]*)?$`

// formatConstraint returns the CUE constraint of a format, or "".
func (w *cueWriter) formatConstraint(format string) string {
	switch format {
	case formatDateTime:
		w.addImport("time")
		return "time.Time"
	case formatDuration:
		w.addImport("time")
		return "time.Duration"
	case formatByte:
		return "=~" + strconv.Quote(base64Pattern)
	case formatCIDR:
		w.addImport("net")
		return "net.IPCIDR"
	case formatIPv4:
		w.addImport("net")
		return "net.IPv4"
	case formatIPv6:
		w.addImport("net")
		return "net.IPv6"
	}
	return ""
}
