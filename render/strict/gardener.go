// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkDNSValues checks that values of a DNSRecord have the form of its type.
func checkDNSValues(object map[string]any) []structure.Finding {
	var out []structure.Finding
	of, _ := valueAt(object, fieldpath.Path{"spec", "recordType"}).(string)
	values, _ := valueAt(object, fieldpath.Path{"spec", "values"}).([]any)
	for i, value := range values {
		text, isText := value.(string)
		if !isText || strings.Contains(text, SymbolicMark) {
			continue
		}
		address, err := netip.ParseAddr(text)
		wrong := ""
		switch {
		case of == "A" && (err != nil || !address.Is4()):
			wrong = "is not an IPv4 address, but the type is A"
		case of == "AAAA" && (err != nil || !address.Is6()):
			wrong = "is not an IPv6 address, but the type is AAAA"
		case of == "CNAME" && err == nil:
			wrong = "is an address, but the type is CNAME; write A or AAAA"
		}
		if wrong != "" {
			out = append(out, structure.Finding{Path: fieldpath.Path{"spec", "values", i}, Type: "Invalid", Message: fmt.Sprintf("%q %s", text, wrong)})
		}
	}
	return out
}

// unitTypes are the unit types of systemd (systemd.unit(5)).
var unitTypes = []string{".automount", ".device", ".mount", ".path", ".scope", ".service", ".slice", ".socket", ".swap", ".target", ".timer"}

// decimalPermissions are likely octal permissions written in decimal: none of them is a useful file
// mode.
var decimalPermissions = []float64{400, 440, 444, 500, 544, 550, 555, 600, 640, 644, 660, 664, 666, 700, 740, 744, 750, 755, 770, 775, 777}

// checkOSConfig checks the files and units of an OperatingSystemConfig.
func checkOSConfig(object map[string]any) []structure.Finding {
	var out []structure.Finding
	files, _ := valueAt(object, fieldpath.Path{"spec", "files"}).([]any)
	for i, file := range files {
		if mode, _ := numberAt(file, fieldpath.Path{"permissions"}); slices.Contains(decimalPermissions, mode) {
			out = append(out, structure.Finding{Path: fieldpath.Path{"spec", "files", i, "permissions"}, Type: "Invalid", Message: fmt.Sprintf("%d is %#o in octal digits; write 0%d", int(mode), int(mode), int(mode))})
		}
	}
	units, _ := valueAt(object, fieldpath.Path{"spec", "units"}).([]any)
	for i, unit := range units {
		at := fieldpath.Path{"spec", "units", i, "name"}
		name, _ := valueAt(unit, fieldpath.Path{"name"}).(string)
		if name != "" && !slices.Contains(unitTypes, path.Ext(name)) && !strings.Contains(name, SymbolicMark) {
			out = append(out, structure.Finding{Path: at, Type: "Invalid", Message: fmt.Sprintf("%q is not a systemd unit: it does not end in a type such as .service", name)})
		}
	}
	return out
}
