// SPDX-License-Identifier: Apache-2.0

// Package crosscheck checks rules about several objects of a landscape: references exist, profiles
// offer what Shoots request, networks are disjoint, and names are unique. The rules are Go code
// that queries an index; CUE would evaluate the whole landscape for every object.
//
// Rules about one object, or about one with the objects of schemas.Surroundings, are in
// schemas/rules.
package crosscheck
