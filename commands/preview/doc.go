// Package preview says of two states of a landscape what comes to pass on the way from one to the
// other, besides what their renders differ in: which removals are held (keepback.go), what settings
// of landscape.yaml mean for what is protected (settings.go), which operations come too late.
//
// It makes no request. What does not live here: the difference of renders (plan), and printing
// (cmd/pergola).
package preview
