// Package paths handles broadcast paths and the patterns that grants are made of.
//
// A path is a string of segments joined by single slashes, without a leading or trailing one; the empty
// string is the root. Everything works segment by segment: "a/b" covers "a/b" and "a/b/c", never "a/bc".
// Except for [Clean], functions expect clean paths. A path has at most [MaxSegments] segments, none of
// them empty.
//
// A [Pattern] describes a set of paths, a [Set] a union of patterns. The package is pure and its values
// are immutable, hence safe for concurrent use.
package paths
