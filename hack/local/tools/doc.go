// Package tools makes the modules of the executables that binaries builds part of this module's
// go.mod. It is never compiled: its imports stand behind the build tag "tools", so that the program
// itself is quick to build.
package tools
