// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// etcd is a client of a server's etcd, by its JSON gateway
// (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/).
type etcd struct{ url string }

// keyPrefix is the prefix of all keys of API servers.
const keyPrefix = "/registry/"

// entry is a key of etcd. The gateway has bytes as base64 and revisions as strings, as
// encoding/json does with these types.
type entry struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

// serverOwnedPrefixes are keys that API servers write without a request while they run.
var serverOwnedPrefixes = []string{"leases/kube-system/apiserver-", "masterleases/", "peerserverleases/"}

func (e entry) isServerOwned() bool {
	return slices.ContainsFunc(serverOwnedPrefixes, func(prefix string) bool { return strings.HasPrefix(string(e.Key), keyPrefix+prefix) })
}

// etcdContent has the entries of an etcd by key, without the keys of serverOwnedPrefixes.
type etcdContent map[string]entry

// read returns the content; without values if keysOnly is set.
func (e etcd) read(keysOnly bool) (etcdContent, error) {
	var answer struct {
		Kvs []entry `json:"kvs"`
	}
	end := []byte(keyPrefix)
	end[len(end)-1]++
	if err := e.call("/v3/kv/range", map[string]any{"key": []byte(keyPrefix), "range_end": end, "keys_only": keysOnly}, &answer); err != nil {
		return nil, err
	}
	out := etcdContent{}
	for _, kv := range answer.Kvs {
		if !kv.isServerOwned() {
			out[string(kv.Key)] = kv
		}
	}
	return out, nil
}

// maxTransactionChanges is the maximum of changes in one transaction (--max-txn-ops of etcd).
const maxTransactionChanges = 128

// restore writes back the content of before, and returns it with its new revisions.
func (e etcd) restore(before etcdContent) (etcdContent, error) {
	now, err := e.read(true)
	if err != nil {
		return nil, err
	}
	var changes []map[string]any
	for key, is := range now {
		if _, was := before[key]; !was {
			changes = append(changes, map[string]any{"request_delete_range": map[string]any{"key": is.Key}})
		}
	}
	for key, was := range before {
		if is, there := now[key]; !there || is.Revision != was.Revision {
			changes = append(changes, map[string]any{"request_put": map[string]any{"key": was.Key, "value": was.Value}})
		}
	}
	for part := range slices.Chunk(changes, maxTransactionChanges) {
		if err := e.call("/v3/kv/txn", map[string]any{"success": part}, &struct{}{}); err != nil {
			return nil, err
		}
	}
	if now, err = e.read(true); err != nil {
		return nil, err
	}
	out := etcdContent{}
	for key, was := range before {
		was.Revision = now[key].Revision
		out[key] = was
	}
	return out, nil
}

func (e etcd) call(path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, err := http.Post(e.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("etcd: %s: %w", path, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s: %s", path, answer.Status, text)
	}
	return json.Unmarshal(text, out)
}
