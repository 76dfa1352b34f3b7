package sqldb

// Tables returns the names of all tables, each after those that it refers to.
func Tables() []string { return tables }
