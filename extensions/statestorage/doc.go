//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package statestorage is the state_storage extension: a storage for the positions that receivers have read their files to. Its content is small and also in
// memory, so that a file that was deleted, replaced or cut while the collector runs is written again, and a damaged one costs only what can be read again. A
// directory has one collector.
//
// log.go has the format of a file; client.go the storage as a component sees it; lock.go the lock of the directory; extension.go looks after all of them.
package statestorage
