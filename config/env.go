package config

import (
	"slices"
	"strings"
)

// logVariable overrides the level of the log, whatever else is set.
const logVariable = "MOQMESH_LOG"

var keysByEnv = index(func(k *key) string { return k.env })

// readEnv lays the variables MOQ_… over the draft. Unknown ones are other programs' business, unless they look like
// ours: these are warned of, since orchestrators set variables of their own making.
func (l *loader) readEnv(env []string) {
	env = slices.Sorted(slices.Values(env))
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "MOQ_") {
			continue
		}
		if k := keysByEnv[name]; k != nil {
			l.set(k, text(value), origin{source: name})
			continue
		}
		if l.outside(inEnv, name, name, text(value)) {
			continue
		}
		for _, s := range sections {
			if s.name != "" && below(name, envName(s.name), "_") {
				l.warn(name, "", "unknown variable, ignored")
			}
		}
	}
}

// readLogVariable lays the variable for the log over everything.
func (l *loader) readLogVariable(env []string) {
	for _, pair := range env {
		if name, value, _ := strings.Cut(pair, "="); name == logVariable && value != "" {
			l.set(keysByName["log.level"], text(value), origin{source: name})
		}
	}
}
