// Package linklab puts a link with a rate, a delay, loss and a queue between two network namespaces, for TCP and UDP of the
// system itself: both ends are TUN devices, and what a host sends to the other passes through this process. It needs
// Linux, root and the ip command; the kernel's own emulation of links (netem) may be missing.
package linklab
