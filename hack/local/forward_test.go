// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckServicePort(t *testing.T) {
	ports := []portOfService{{Name: "https", Port: 443, Protocol: "TCP"}, {Name: "dns", Port: 53, Protocol: "UDP"}, {Port: 80, Protocol: "TCP"}}
	for name, test := range map[string]struct {
		ports  []portOfService
		wanted int
		err    string
	}{
		"there":       {ports, 443, ""},
		"nameless":    {ports, 80, ""},
		"not there":   {ports, 8080, "has no TCP port 8080: it has 443 (https), 80"},
		"UDP":         {ports, 53, "has no TCP port 53: it has 443 (https), 80"},
		"only UDP":    {ports[1:2], 53, "has no TCP port"},
		"none at all": {nil, 1, "has no TCP port"},
	} {
		err := checkServicePort(test.ports, test.wanted)
		if test.err == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, test.err, name)
		}
	}
}

func TestFindExecutable(t *testing.T) {
	folder := t.TempDir()
	script, plain := filepath.Join(folder, "script"), filepath.Join(folder, "plain")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	t.Setenv("PATH", folder)
	t.Chdir(folder)
	for name, test := range map[string]struct{ want, err string }{
		"script": {script, ""}, "./script": {script, ""}, script: {script, ""},
		"nothing":        {"", "there is no command nothing in the PATH"},
		folder + "/none": {"", "there is no file " + folder + "/none"},
		plain:            {"", plain + " is not an executable file"},
		folder:           {"", folder + " is not an executable file"},
	} {
		path, err := findExecutable(name)
		assert.Equal(t, test.want, path, name)
		if test.err == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, test.err, name)
		}
	}
}
