package snapshot

// Kind names what is wrong with something in a store.
type Kind string

// The kinds of findings that this package reports.
const (
	// Snapshots that cannot be restored.
	DocumentDamaged Kind = "document_damaged" // or misplaced
	ArchiveMissing  Kind = "archive_missing"
	ArchiveDamaged  Kind = "archive_damaged"

	// The objects by which a location's snapshots are found. Vault.Repair rebuilds them.
	LatestMissing   Kind = "latest_missing"
	LatestDamaged   Kind = "latest_damaged" // or its snapshot is not in the history, or cannot be restored
	ManifestMissing Kind = "manifest_missing"
	ManifestDamaged Kind = "manifest_damaged"

	// Documents of agents that their storage has put where Stasis does not look.
	Misplaced Kind = "documents_misplaced"

	// Objects that could not be checked.
	VersionUnknown  Kind = "version_unknown"  // a later Stasis wrote it
	IdentityMissing Kind = "identity_missing" // no identity here opens it
	Unreadable      Kind = "unreadable"       // the store returned an error for this object alone

	// Objects that nothing needs.
	ArchiveOrphaned Kind = "archive_orphaned" // no document names it
	StrayObject     Kind = "stray_object"     // its name is unknown

	// Objects that a copy found in its destination.
	OtherObject Kind = "other_object" // a different object has the key
)

// Finding describes one problem in a store. Findings can be compared.
type Finding struct {
	Kind     Kind
	Location Location // zero if the object is in no location
	Snapshot string   // ID; "" if the object belongs to no snapshot
	Archive  string   // ID; "" if the object belongs to no archive
	Key      string   // of the object: its path below the store's root
	What     string   // for people; holds no secret
	// Repairable reports that [Vault.Repair] of the location fixes it.
	Repairable bool
}
