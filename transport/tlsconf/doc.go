// Package tlsconf holds certificates: those a listener serves (files that are reloaded when they
// change, or generated ones that are renewed before they expire) and what a dialer accepts (roots,
// pinned fingerprints, a client certificate).
package tlsconf
