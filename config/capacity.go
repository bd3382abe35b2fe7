package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moqmesh/moqmesh/internal/memory"
)

// Capacity is an amount of memory: bytes, or a part of what the process may use.
type Capacity struct {
	Bytes   int64
	Percent int64 // 1 to 100; counts if Bytes is 0
}

func (c Capacity) String() string {
	if c.Bytes != 0 {
		return fmt.Sprintf("%d bytes", c.Bytes)
	}
	return fmt.Sprintf("%d%%", c.Percent)
}

// ErrMemory says that the memory of this machine cannot be determined.
var ErrMemory = errors.New("give a size instead of a percentage")

// Resolve is the capacity in bytes, 0 = unbounded. A part is one of what the process may use: the limit of its
// control group, else the memory of the machine.
func (c Capacity) Resolve() (int64, error) { return c.resolve(memory.System()) }

func (c Capacity) resolve(system fs.FS) (int64, error) {
	if c.Bytes != 0 || c.Percent == 0 {
		return c.Bytes, nil
	}
	total, err := memory.Total(system)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, ErrMemory)
	}
	return total/100*c.Percent + total%100*c.Percent/100, nil
}
