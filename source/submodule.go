// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// maxModulesFile is the maximum size of .gitmodules, in bytes.
const maxModulesFile = mebibyte

// fetchSubmodules fetches the submodules of a tree at the commits that the tree names. So the
// signature of the tree's commit covers them.
func (r *gitRemote) fetchSubmodules(ctx context.Context, tree *TreeFS, links map[string]plumbing.Hash) (map[string]*TreeFS, error) {
	if r.submoduleDepth >= maxSubmoduleDepth {
		return nil, newError(ReasonTooLarge, "submodules are in submodules, more than %d deep", maxSubmoduleDepth)
	}
	addresses, err := r.submoduleURLs(tree)
	if err != nil {
		return nil, err
	}
	out := map[string]*TreeFS{}
	for where, commit := range links {
		address, ok := addresses[where]
		if !ok {
			return nil, newError(ReasonSubmoduleMissing, "%s is a submodule without a url in .gitmodules", where)
		}
		module, err := r.submoduleRemote(address)
		if err != nil {
			return nil, err
		}
		snapshot, err := module.At(ctx, commit.String())
		if err != nil {
			e := &Error{Reason: ReasonUnreachable, Message: "submodule " + where, Err: err}
			if inner, ok := errors.AsType[*Error](err); ok {
				e.Reason, e.Permanent = inner.Reason, inner.Permanent
			}
			return nil, e
		}
		out[where] = snapshot.FS.(*TreeFS)
	}
	return out, nil
}

// submoduleURLs parses .gitmodules. Each address must be on the same server, because others must
// not see the credentials.
func (r *gitRemote) submoduleURLs(tree *TreeFS) (map[string]*url.URL, error) {
	info, err := tree.Stat(".gitmodules")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if info.Size() > maxModulesFile {
		return nil, newError(ReasonTooLarge, ".gitmodules is larger than %d MiB", maxModulesFile/mebibyte)
	}
	data, err := tree.ReadFile(".gitmodules")
	if err != nil {
		return nil, err
	}
	modules := config.NewModules()
	if err := modules.Unmarshal(data); err != nil {
		return nil, newError(ReasonInvalid, ".gitmodules cannot be read: it has the form of a Git configuration")
	}
	out := map[string]*url.URL{}
	for _, module := range modules.Submodules {
		address, err := r.submoduleURL(module.URL)
		if err != nil {
			return nil, newError(ReasonInvalid, "submodule %s: %s", boundedLine(module.Path, 100), err)
		}
		out[path.Clean(module.Path)] = address
	}
	return out, nil
}

func (r *gitRemote) submoduleURL(address string) (*url.URL, error) {
	if strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../") {
		relative := *r.location
		relative.Path, relative.RawPath = path.Join(strings.TrimSuffix(relative.Path, "/"), address), ""
		if !strings.HasPrefix(relative.Path, "/") || relative.Path == "/" {
			return nil, errors.New("its relative url leads out of the server")
		}
		return &relative, nil
	}
	if user, rest, ok := strings.Cut(address, "@"); ok && !strings.Contains(address, "://") {
		if host, where, ok := strings.Cut(rest, ":"); ok {
			address = "ssh://" + user + "@" + host + "/" + strings.TrimPrefix(where, "/")
		}
	}
	location, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("its url cannot be read")
	}
	if location.Scheme != r.location.Scheme || !strings.EqualFold(location.Host, r.location.Host) {
		return nil, errors.New("its server or protocol differs from the repository's: only submodules of the same server are read; use a relative url (../other.git)")
	}
	if r.location.Scheme == "file" {
		return nil, errors.New("it has an absolute path on this machine: use a relative url (../other.git)")
	}
	if _, secret := location.User.Password(); secret || location.RawQuery != "" || location.Fragment != "" {
		return nil, errors.New("its url has a password, a query or a fragment in it")
	}
	location.User = r.location.User
	return location, nil
}

// submoduleRemote returns the remote of a submodule. It shares all options but the repository.
func (r *gitRemote) submoduleRemote(location *url.URL) (*gitRemote, error) {
	sum := sha256.Sum256([]byte(location.String()))
	id := hex.EncodeToString(sum[:8])
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if module := r.submoduleRemotes[id]; module != nil {
		return module, nil
	}
	options := r.options
	options.URL, options.Ref, options.Verify, options.AppliedRevision = location.String(), landscapev1alpha1.Reference{}, nil, ""
	options.Dir = filepath.Join(r.options.Dir, "modules", id)
	if r.submoduleCount.Add(1) > int32(r.options.Limits.Submodules) { // a small number
		r.submoduleCount.Add(-1)
		return nil, newError(ReasonTooLarge, "there are more than %d submodules, those in submodules included", r.options.Limits.Submodules)
	}
	module, err := newGitRemote(options, location, nil)
	if err != nil {
		return nil, err
	}
	module.submoduleDepth, module.submoduleCount = r.submoduleDepth+1, r.submoduleCount
	r.submoduleRemotes[id] = module
	return module, nil
}
