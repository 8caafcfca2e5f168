// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/schemas/resultcache"
)

const (
	flagCacheDir = "cache-dir"
	flagNoCache  = "no-cache"
	envCacheDir  = "PERGOLA_CACHE_DIR"
)

// addCacheFlags adds the flags for the validation cache.
func addCacheFlags(root *cobra.Command) {
	root.PersistentFlags().String(flagCacheDir, os.Getenv(envCacheDir),
		"folder for results of validation between runs, so that only changes are checked (default: the cache folder of the user; env "+envCacheDir+")")
	root.PersistentFlags().Bool(flagNoCache, false, "check everything again and save no results")
	root.PersistentFlags().Lookup(flagCacheDir).DefValue = ""
}

// validationStores are the open stores of a process, by landscape; all revisions of a landscape
// share one.
type validationStores struct {
	mutex  sync.Mutex
	byName map[string]*resultcache.Store
}

type validationStoresKey struct{}

func withValidationStores(ctx context.Context) context.Context {
	return context.WithValue(ctx, validationStoresKey{}, &validationStores{byName: map[string]*resultcache.Store{}})
}

// validationStore returns the store of a landscape folder. It is in memory if caching is off or the
// cache folder cannot be used.
func validationStore(cmd *cobra.Command, dir string) *resultcache.Store {
	all, ok := cmd.Context().Value(validationStoresKey{}).(*validationStores)
	name, err := landscapeName(dir)
	if !ok || err != nil {
		return nil
	}
	all.mutex.Lock()
	defer all.mutex.Unlock()
	store, ok := all.byName[name]
	if !ok {
		store = resultcache.InMemory()
		off, err := cmd.Flags().GetBool(flagNoCache)
		if folder, unknown := cacheDir(cmd); err == nil && !off && unknown == nil {
			if opened := resultcache.Open(folder, name); opened != nil {
				store = opened
			}
		}
		all.byName[name] = store
	}
	return store
}

// landscapeName identifies a landscape. In a Git repository it follows from the location of the Git
// folder, so that a checkout of staged files elsewhere is the same landscape.
func landscapeName(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for root := absolute; root != filepath.Dir(root); root = filepath.Dir(root) {
		git := filepath.Join(root, ".git")
		info, err := os.Lstat(git)
		if err != nil {
			continue
		}
		if text, err := os.ReadFile(git); info.Mode().IsRegular() && err == nil {
			if elsewhere, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: "); ok {
				git = elsewhere
			}
		}
		inside, err := filepath.Rel(root, absolute)
		return git + " " + inside, err
	}
	return absolute, nil
}

// cacheDir returns the folder of the flag, or the user's cache folder.
func cacheDir(cmd *cobra.Command) (string, error) {
	if dir, err := cmd.Flags().GetString(flagCacheDir); err != nil || dir != "" {
		return dir, err
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "pergola"), err
}

// saveValidationStore saves the results for the next run. A failure is only reported if --cache-dir
// was given.
func saveValidationStore(cmd *cobra.Command, dir string) {
	if err := validationStore(cmd, dir).Save(); err != nil && cmd.Flags().Changed(flagCacheDir) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", printable(err.Error()))
	}
}
