//go:build !linux

package kernelfs

// Of does not know.
func Of(string) string { return "" }
