// Package netsim is a network in one process for tests of whole clusters: hosts with addresses, and
// between any two of them a link with delay, loss, limited bandwidth and a queue, which can be cut. Its
// sockets are net.PacketConns of quic-go's simnet. Inside a synctest bubble it runs in virtual time.
//
// Which packets are lost depends on the seed, the two hosts and the order in which one sends to the
// other, and on nothing else that happens in the network.
package netsim
