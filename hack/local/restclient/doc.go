// Package restclient talks to an API server with plain HTTP and JSON: just enough to set up a
// cluster and to see that it is ready. client-go would make this program slow to compile.
package restclient
