// Package e2e drives the built binary as a user does: flags, files, signals, exit codes. Run by `make e2e`.
package e2e
