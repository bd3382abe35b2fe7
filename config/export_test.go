package config

import "io/fs"

// What the tests of the package look at from outside.
var (
	ParseDuration = parseDuration
	ParseSize     = parseSize
	Positions     = positions
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

// OutsideNames lists the settings that are known but do not exist.
func OutsideNames() (inertNames, unsupportedNames []string) {
	for _, o := range inert {
		inertNames = append(inertNames, o.name)
	}
	for _, o := range unsupported {
		unsupportedNames = append(unsupportedNames, o.name)
	}
	return inertNames, unsupportedNames
}
