// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// ContentID identifies the content of a regular file in the repository without reading it: equal
// ids mean equal content. It returns false for everything else.
func (t *TreeFS) ContentID(name string) (string, bool) {
	owner, inside := t.treeOf(name)
	entry, err := owner.entry(inside)
	if err != nil || entry.Mode == filemode.Symlink || !entry.Mode.IsFile() {
		return "", false
	}
	if !owner.objects.hasObject(entry.Hash) {
		return "", false
	}
	return "git " + entry.Hash.String(), true
}
