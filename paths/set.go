package paths

// Set is a union of patterns. The zero Set is empty and matches nothing.
type Set struct{ patterns []Pattern }

// Pattern describes a set of paths.
type Pattern struct{ text string }
