//go:build race

package sim_test

// tierSeeds is how many seeds belong to the test tier under the race detector, which makes them some ten times slower.
const tierSeeds = 30
