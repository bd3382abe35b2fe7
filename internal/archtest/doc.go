// Package archtest holds the import graph of the project to its map: its tests fail on an arrow that the map does
// not have, on a package without a comment, and on I/O in the pure packages.
package archtest
