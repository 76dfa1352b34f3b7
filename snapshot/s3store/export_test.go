package s3store

// PrefixOf is where a store is in its bucket.
func PrefixOf(s *Store) string { return s.opts.Prefix }
