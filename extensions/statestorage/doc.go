//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package statestorage is the state_storage extension: a storage for receivers' read positions. The content is small and also in memory: a file deleted,
// replaced or truncated while the collector runs is rewritten, and a damaged file only causes data to be read again. A directory has one collector.
//
// log.go has the format of a file; client.go the storage as a component sees it; lock.go the lock of the directory; extension.go manages the clients and the
// directory.
package statestorage
