// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir is a state folder, as an absolute path.
type Dir string

// Open creates the folder, if needed, and ignores its content in Git.
func Open(path string) (Dir, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving state folder: %w", err)
	}
	dir := Dir(absolute)
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return "", fmt.Errorf("creating state folder: %w", err)
	}
	ignore := filepath.Join(absolute, ".gitignore")
	if _, err := os.Stat(ignore); os.IsNotExist(err) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o600); err != nil {
			return "", fmt.Errorf("writing %s: %w", ignore, err)
		}
	}
	return dir, nil
}

// HasState reports whether the folder has ever had clusters.
func (d Dir) HasState() bool {
	_, err := os.Stat(d.stateFile())
	return err == nil
}

// Kubeconfig returns the administrator's kubeconfig of one cluster.
func (d Dir) Kubeconfig(cluster string) string {
	return filepath.Join(string(d), "kubeconfigs", cluster+".yaml")
}

// MergedKubeconfig returns the kubeconfig with one context per cluster.
func (d Dir) MergedKubeconfig() string { return filepath.Join(string(d), "kubeconfig") }

// PartKubeconfig returns the kubeconfig of a part of a cluster.
func (d Dir) PartKubeconfig(cluster, part string) string {
	return filepath.Join(d.PKI(cluster), part+".kubeconfig")
}

// PKI returns the folder of a cluster's keys and certificates.
func (d Dir) PKI(cluster string) string { return filepath.Join(string(d), "pki", cluster) }

// Data returns the data folder of a part.
func (d Dir) Data(part string) string { return filepath.Join(string(d), "data", part) }

// Log returns the log of a part.
func (d Dir) Log(cluster, part string) string {
	return filepath.Join(string(d), "logs", cluster, part+".log")
}

// Record returns the process record of a part.
func (d Dir) Record(cluster, part string) string {
	return filepath.Join(string(d), "run", cluster, part+".pid")
}

func (d Dir) stateFile() string { return filepath.Join(string(d), "state.json") }
func (d Dir) lockFile() string  { return filepath.Join(string(d), "lock") }
