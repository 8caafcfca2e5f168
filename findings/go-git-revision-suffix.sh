#!/usr/bin/env bash
# go-git v5.19.3: ResolveRevision resolves `main@{1}` and `main@{upstream}` to main itself.
#
# gitrevisions(7) defines them as the previous commit of main and the branch that main follows.
# `git rev-parse` prints those commits. go-git parses the suffix, ignores it, and returns the tip of
# main without an error. So a program that compares `main@{1}` with main finds no difference.
# `@{1}` and `@{upstream}` without a name are errors.
#
# Needs Go, git and the Go module proxy. Exit code 0: the behaviour is as described. 1: it has
# changed.
set -o errexit -o nounset -o pipefail

dir="$(mktemp -d)"
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

git init -q -b main "$dir/repository"
cd "$dir/repository"
git commit -q --allow-empty -m one
git branch followed
git commit -q --allow-empty -m two
git config branch.main.remote .
git config branch.main.merge refs/heads/followed

mkdir "$dir/program"
cd "$dir/program"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

func main() {
	repository, err := git.PlainOpen(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	for _, revision := range os.Args[2:] {
		hash, err := repository.ResolveRevision(plumbing.Revision(revision))
		if err != nil {
			fmt.Println("error")
			continue
		}
		fmt.Println(hash)
	}
}
GO
go mod init example.org/program 2> /dev/null
go get github.com/go-git/go-git/v5@v5.19.3 2> /dev/null
go build -o program .

revisions=(main 'main@{1}' 'main@{upstream}' '@{1}' '@{upstream}')
mapfile -t library < <(./program "$dir/repository" "${revisions[@]}")
tip="$(git -C "$dir/repository" rev-parse main)"
before="$(git -C "$dir/repository" rev-parse main~1)"
name() { case "$1" in "$tip") echo two ;; "$before") echo one ;; *) echo "$1" ;; esac; }
for i in "${!revisions[@]}"; do
  printf '%-16s git: %-4s go-git: %s\n' "${revisions[$i]}" "$(name "$(git -C "$dir/repository" rev-parse "${revisions[$i]}")")" "$(name "${library[$i]}")"
done | tee "$dir/output"

# Seen on 2026-11-28 with Go 1.26.8 and git 2.39.5:
diff - "$dir/output" <<'SEEN'
main             git: two  go-git: two
main@{1}         git: one  go-git: two
main@{upstream}  git: one  go-git: two
@{1}             git: one  go-git: error
@{upstream}      git: one  go-git: error
SEEN
