// Package deploy is how Pergola itself gets into clusters: the Helm chart of its roles
// (charts/pergola), the Kustomize bases that are rendered from it (kustomize), the image
// (Dockerfile), and the rendering of the chart in the program (chart.go), by which `pergola
// install` needs no Helm.
//
// What does not live here: what Pergola deploys for Gardens, Seeds and Shoots (components), and how
// objects are applied (install, by package apply).
package deploy
