// Package peerlist keeps the peers of cluster.connect_api (C15 to C20a): a JSON array behind a URL or in a file, looked
// at for as long as the relay runs. A list that cannot be had or used as a whole changes nothing: the last good one
// stays.
package peerlist
