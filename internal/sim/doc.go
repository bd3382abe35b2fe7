// Package sim runs whole clusters in one process: the relay as it is, its clients as they are, real QUIC, on a simulated
// network and in virtual time. Everything here must run inside a testing/synctest bubble.
//
// A [Cluster] has relays that are linked as its [Topology] says. Publishers write content of which every byte follows from
// its name, so that a [Viewer] can judge whatever reaches it, and the faults of the cluster are methods: Crash, Isolate,
// Drain, Cut. What must hold after them, and meanwhile, is in check.go.
package sim
