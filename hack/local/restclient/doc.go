// SPDX-License-Identifier: Apache-2.0

// Package restclient is a minimal HTTP and JSON client of API servers, enough to set up a cluster
// and check it. client-go would make this program slow to compile.
package restclient
