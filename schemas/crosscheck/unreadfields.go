// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"strings"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/unread"
)

// checkUnreadFields reports all fields without a reader, in one finding per object.
func (c *checker) checkUnreadFields() {
	fields := unread.FieldsIn(c.kind(), c.object())
	if len(fields) == 0 {
		return
	}
	var others []string
	for _, field := range fields[1:] {
		others = append(others, field.String())
	}
	also := ""
	if len(others) > 0 {
		also = ", nor " + strings.Join(others, ", nor ")
	}
	c.report(fields[0].String(), schemas.TypeInvalid, "no component and no controller of Pergola reads this field%s; it has no effect, except on extensions that read it themselves", also)
}
