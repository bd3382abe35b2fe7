// Package serve decides by tokens, client certificates and public rules, in this order (auth 6.4). [Rules] do so in the
// process of a relay; a [Handler] puts them behind HTTP, for relays that ask an auth server.
package serve
