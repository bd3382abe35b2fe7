// Package httpcache keeps what a URL holds up to date, as a private cache of RFC 9111 for one resource: no request while
// the stored response is fresh, a conditional one when it is stale. It bounds what a server can do to us by its answer:
// size, time, how long a response counts as fresh and how long a request is postponed.
package httpcache
