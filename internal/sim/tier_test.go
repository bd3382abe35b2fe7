//go:build !race

package sim_test

// tierSeeds is how many seeds belong to the test tier.
const tierSeeds = 300
