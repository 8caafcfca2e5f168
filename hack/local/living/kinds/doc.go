// Package kinds watches custom resources whose CustomResourceDefinition may come and go at any
// time.
//
// While a kind is not there, it has no objects; that is no error. What is made of the objects is
// the business of the controllers of a living cluster.
package kinds
