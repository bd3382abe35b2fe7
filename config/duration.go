package config

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

var durationUnits = units(time.Duration(1), map[time.Duration]string{
	time.Nanosecond:    "ns nsec nanos",
	time.Microsecond:   "us µs usec micros",
	time.Millisecond:   "ms msec millis",
	time.Second:        "s sec secs second seconds",
	time.Minute:        "m min mins minute minutes",
	time.Hour:          "h hr hrs hour hours",
	24 * time.Hour:     "d day days",
	7 * 24 * time.Hour: "w week weeks",
})

var sizeUnits = units(int64(1), map[int64]string{
	1:       "B",
	1e3:     "kB KB k K",
	1e6:     "MB M",
	1e9:     "GB G",
	1e12:    "TB T",
	1 << 10: "KiB Ki",
	1 << 20: "MiB Mi",
	1 << 30: "GiB Gi",
	1 << 40: "TiB Ti",
})

func units[T ~int64](_ T, names map[T]string) map[string]uint64 {
	out := make(map[string]uint64)
	for factor, list := range names {
		for name := range strings.FieldsSeq(list) {
			out[name] = uint64(factor)
		}
	}
	return out
}

var (
	errDuration = errors.New(`not a duration such as "300ms", "10s" or "1h 30m"; a unit is required`)
	errSize     = errors.New(`not a size such as "512MB", "8GiB" or a number of bytes`)
	errTooLarge = errors.New("too large")
)

// parseDuration reads whole numbers with units, with or without spaces between: "300ms", "1h 30m".
func parseDuration(text string) (time.Duration, error) {
	sum, ok := uint64(0), false
	for rest := strings.Trim(text, " "); rest != ""; ok = true {
		n, unit, after, err := quantity(rest)
		factor := durationUnits[unit]
		if err != nil || factor == 0 {
			return 0, errDuration
		}
		hi, part := bits.Mul64(n, factor)
		if sum += part; hi != 0 || part > math.MaxInt64 || sum > math.MaxInt64 {
			return 0, errTooLarge
		}
		rest = after
	}
	if !ok {
		return 0, errDuration
	}
	return time.Duration(sum), nil
}

// parseSize reads a number of bytes with or without a unit.
func parseSize(text string) (int64, error) {
	n, unit, rest, err := quantity(strings.Trim(text, " "))
	if err != nil || rest != "" {
		return 0, errSize
	}
	factor := uint64(1)
	if unit != "" {
		if factor = sizeUnits[unit]; factor == 0 {
			return 0, errSize
		}
	}
	hi, bytes := bits.Mul64(n, factor)
	if hi != 0 || bytes > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(bytes), nil
}

// quantity cuts a number and the unit behind it off text, and the spaces after both.
func quantity(text string) (n uint64, unit, rest string, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if n, err = strconv.ParseUint(text[:digits], 10, 64); err != nil {
		return 0, "", "", err
	}
	text = strings.TrimLeft(text[digits:], " ")
	end := strings.IndexAny(text, " 0123456789")
	if end < 0 {
		end = len(text)
	}
	return n, text[:end], strings.TrimLeft(text[end:], " "), nil
}

// formatDuration is the inverse of parseDuration for messages.
func formatDuration(d time.Duration) string {
	if d%time.Second != 0 || d == 0 {
		return d.String()
	}
	var out []string
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.size; n > 0 {
			out = append(out, fmt.Sprintf("%d%s", n, unit.name))
			d -= n * unit.size
		}
	}
	return strings.Join(out, " ")
}
