// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package apiserver

import "sigs.k8s.io/controller-runtime/pkg/envtest"

// tieToStarter does nothing: other systems have no equivalent.
func tieToStarter(*envtest.Environment) error { return nil }
