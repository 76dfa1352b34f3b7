package main

func (m *measured) write(out string) error { return nil }
