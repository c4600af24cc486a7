package tail

// Head visits the lines in the first most bytes of a file's content, decompressed if necessary, until visit returns false. A last line without its ending is
// visited too.
func Head(path string, most int64, visit func(text []byte) bool) error {
	t := &Tailer{cfg: DefaultConfig(), bombBytes: bombBytes}
	t.cfg.FollowSymlinks = true
	var buf []byte
	_, _, err := t.sniff(path, 0, most, true, &buf, nil, visit)
	return err
}
