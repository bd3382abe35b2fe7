// Package message holds the moq-lite messages, versions 01 to 06, and their codecs. Nothing here blocks or keeps
// state: encoders append to a slice, decoders read a complete message body.
package message

import "fmt"

// Version is a moq-lite version.
type Version uint8

// The versions, oldest first.
const (
	Lite01 Version = iota + 1
	Lite02
	Lite03
	Lite04
	Lite05
	Lite06
)

func (v Version) String() string { return fmt.Sprintf("moq-lite-%02d", uint8(v)) }

// Token is the ALPN or WebTransport sub-protocol that stands for v: Lite01 and Lite02 share "moql".
func (v Version) Token() string {
	if v <= Lite02 {
		return "moql"
	}
	return v.String()
}

// Code is the number of v in an in-band SETUP.
func (v Version) Code() uint64 { return 0xff0dad00 + uint64(v) }
