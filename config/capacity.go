package config

import "fmt"

// Capacity is an amount of memory: bytes, or a part of what the process may use.
type Capacity struct {
	Bytes   int64
	Percent float64 // 0 to 100, exclusive of 0; counts if Bytes is 0
}

func (c Capacity) String() string {
	if c.Bytes != 0 {
		return fmt.Sprintf("%d bytes", c.Bytes)
	}
	return fmt.Sprintf("%g%%", c.Percent)
}
