package media

// Waker is told, outside of any lock, that a reader has something to do.
type Waker interface{ Wake() }
type Reader struct{}
type GroupReader struct{}
type Copy struct{}
type GroupWriter struct{}
