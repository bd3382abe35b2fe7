package endpoint

import (
	"crypto/hkdf"
	"crypto/sha256"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

// The defaults of QUIC.
const (
	DefaultIdleTimeout         = 10 * time.Second
	DefaultKeepAlive           = 3 * time.Second
	DefaultMaxStreams          = 10_000
	DefaultReceiveWindow       = 64 << 20
	DefaultStreamReceiveWindow = 8 << 20

	initialReceiveWindow       = 8 << 20
	initialStreamReceiveWindow = 1 << 20

	// connectionIDLength must never change: peers of an earlier run recognize a stateless reset by it.
	connectionIDLength = 8

	h3 = "h3"
)

// config returns quic-go's settings. handshake bounds a whole handshake; 0 leaves quic-go's 10 s.
func (c QUIC) config(handshake time.Duration) *quicgo.Config {
	keepAlive := orDefault(c.KeepAlive, DefaultKeepAlive)
	streams := orDefault(c.MaxStreams, DefaultMaxStreams)
	window := orDefault(c.ReceiveWindow, DefaultReceiveWindow)
	streamWindow := orDefault(c.StreamReceiveWindow, DefaultStreamReceiveWindow)
	return &quicgo.Config{
		HandshakeIdleTimeout:             handshake / 2, // quic-go allows twice this in all
		MaxIdleTimeout:                   orDefault(c.IdleTimeout, DefaultIdleTimeout),
		KeepAlivePeriod:                  max(0, keepAlive),
		MaxIncomingStreams:               streams,
		MaxIncomingUniStreams:            streams,
		InitialStreamReceiveWindow:       min(initialStreamReceiveWindow, streamWindow),
		MaxStreamReceiveWindow:           streamWindow,
		InitialConnectionReceiveWindow:   min(initialReceiveWindow, window),
		MaxConnectionReceiveWindow:       window,
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Keys are the secrets of a socket that should survive a restart. With the same StatelessReset key peers
// that send learn at once that their connections are gone; with the same Token key returning clients skip
// the validation of their address.
type Keys struct {
	StatelessReset, Token [32]byte
}

// DeriveKeys derives the keys of a socket from a secret that only this server knows, of any length: a
// file of random bytes or a private key. The same secret yields the same keys.
func DeriveKeys(secret []byte) (*Keys, error) {
	var keys Keys
	for info, key := range map[string]*[32]byte{
		"moqmesh quic stateless reset": &keys.StatelessReset,
		"moqmesh quic address token":   &keys.Token,
	} {
		b, err := hkdf.Key(sha256.New, secret, nil, info, len(key))
		if err != nil {
			return nil, err
		}
		copy(key[:], b)
	}
	return &keys, nil
}
