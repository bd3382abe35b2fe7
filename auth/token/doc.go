// Package token issues and verifies the tokens of clients: JSON Web Tokens whose claims are patterns, signed with JSON
// Web Keys, in the formats that other relays and libraries of the protocol read and write (auth 6).
//
// A [Key] is bound to one algorithm: a token is verified with what the key says, never with what the token says. A
// [Keys] finds the key that a token names: a file, a directory, or a set behind a URL. [Claims.At] turns claims into
// what may be done at a dialed path.
package token
