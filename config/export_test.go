package config

import "io/fs"

// What the tests of the package look at from outside.
var (
	ParseDuration = parseDuration
	ParseSize     = parseSize
	Positions     = positions
	FlagName      = flagName
	EnvName       = envName
)

// ResolveIn is Resolve with another file system.
func (c Capacity) ResolveIn(system fs.FS) (int64, error) { return c.resolve(system) }

// KeyInfo is a setting for the tests that hold pages and structs together.
type KeyInfo struct {
	Name, Flag, Env, Default, Example, Doc string
	List                                   bool
}

// Keys lists all settings.
func Keys() (out []KeyInfo) {
	for _, k := range keys {
		out = append(out, KeyInfo{k.name, k.flag, k.env, k.def, k.example, k.doc, k.list})
	}
	return out
}

// Outside is a setting that is known but does not exist.
type Outside struct{ Name, Off string }

// OutsideNames lists them.
func OutsideNames() (inertNames, unsupportedNames []Outside) {
	for _, o := range inert {
		inertNames = append(inertNames, Outside{o.name, o.off})
	}
	for _, o := range unsupported {
		unsupportedNames = append(unsupportedNames, Outside{o.name, o.off})
	}
	return inertNames, unsupportedNames
}

// Renamed lists the old names.
func Renamed() (names []string) {
	for _, r := range renamed {
		names = append(names, r.name)
	}
	return names
}
