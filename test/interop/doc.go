// Package interop drives the built relay with the field's own clients: the JavaScript library under Node and the Rust
// library through its Python bindings. Run by `make interop`, which installs them.
package interop
