// Package bench drives a relay under load and measures what a delivered frame costs: CPU, memory, latency, loss. It
// works with any relay that speaks moq-lite 06: it needs a URL, and the process id for CPU and memory.
package bench
