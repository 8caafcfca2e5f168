package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestArgumentErrors: a command names the argument that is missing or too many, in the words of its usage.
func TestArgumentErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"validate"}, "PATH is missing: pergola validate PATH… [flags]; "},
		{[]string{"render"}, "LANDSCAPE is missing: pergola render LANDSCAPE [flags]; "},
		{[]string{"diff"}, "LANDSCAPE is missing: pergola diff LANDSCAPE… [flags]; "},
		{[]string{"apply", "a", "b"}, `"b" is one argument too many: pergola apply LANDSCAPE [flags]; `},
		{[]string{"operate", "a"}, "OBJECT is missing: pergola operate LANDSCAPE OBJECT OPERATION [flags]; "},
		{[]string{"operate", "a", "b", "c", "d", "e"}, `"d" is one argument too many: pergola operate `},
		{[]string{"why", "a"}, "KIND is missing: pergola why LANDSCAPE KIND "},
		{[]string{"explain", "Shoot", "Seed"}, `"Seed" is one argument too many: pergola explain `},
		{[]string{"approve", "local"}, "ID is missing: pergola approve LANDSCAPE ID... [flags]; "},
		{[]string{"version", "now"}, `"now" is one argument too many: pergola version [flags]; `},
		{[]string{"restore"}, "LANDSCAPE is missing: pergola restore LANDSCAPE --from FILE [flags]; "},
	} {
		o := pergola(t, test.args...)
		assert.Equal(t, 2, o.code, test.args)
		assert.Contains(t, o.stderr, "Error: "+test.want, test.args)
		assert.Contains(t, o.stderr, "pergola "+test.args[0]+" --help has examples", test.args)
	}
}
