// SPDX-License-Identifier: Apache-2.0

// Package evaluation turns CUE files into plain values with their places. CUE cannot be
// interrupted, and its memory use depends on the file. So there are two evaluators: InProcess for
// trusted files, and Pool for all others. Pool uses worker processes with limits, without
// environment and network, and ends those that exceed a limit.
//
// Files and results may hold Secrets, so they go only through pipes. Package landscapes interprets
// the objects.
package evaluation
