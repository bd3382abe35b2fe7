package config

import (
	"errors"
	"io"
)

// ErrHelp says that -h or --help was given.
var ErrHelp = errors.New("help requested")

// Input is where settings come from, in rising precedence: defaults, the file, the environment, flags.
type Input struct {
	Args []string // flags and at most one positional argument, the file; without program and subcommand
	Env  []string // as os.Environ returns it
	// ReadFile reads the file; nil = os.ReadFile.
	ReadFile func(name string) ([]byte, error)
}

// Load reads and checks all settings. The error is ErrHelp or Errors.
func Load(in Input) (*Config, error) { return nil, errors.ErrUnsupported }

// Development is the relay that runs without any settings: localhost:4443 on UDP and TCP, a generated certificate,
// everything public, internal endpoints on a loopback port.
func Development() *Config { return nil }

// Usage writes the help text: every flag, by section.
func Usage(w io.Writer) error { return errors.ErrUnsupported }
