//go:build !linux

package bench

import "net"

func coalesce(*net.UDPConn) bool { return false }

func segment(_ []byte, n int) int { return n }
