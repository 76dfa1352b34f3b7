package snapshot

// Kind is what is wrong with something in a store.
type Kind string

// The kinds of findings that this room makes.
const (
	// A snapshot that cannot be restored.
	DocumentDamaged Kind = "document_damaged" // or in another's place
	ArchiveMissing  Kind = "archive_missing"
	ArchiveDamaged  Kind = "archive_damaged"

	// What a location's snapshots are found by. Vault.Repair rebuilds it.
	LatestMissing   Kind = "latest_missing"
	LatestDamaged   Kind = "latest_damaged" // or of no snapshot in its history, or of one that cannot be restored
	ManifestMissing Kind = "manifest_missing"
	ManifestDamaged Kind = "manifest_damaged"

	// What could not be looked at.
	VersionUnknown  Kind = "version_unknown"  // a later Stasis wrote it
	IdentityMissing Kind = "identity_missing" // no identity here opens it
	Unreadable      Kind = "unreadable"       // the store gave an error for this object alone

	// What is there and nobody needs.
	ArchiveOrphaned Kind = "archive_orphaned" // no document names it
	StrayObject     Kind = "stray_object"     // under a name that nothing has

	// What a copy found in its destination.
	OtherObject Kind = "other_object" // another one has the key
)

// Finding is one thing that is wrong in a store. Findings can be compared.
type Finding struct {
	Kind     Kind
	Location Location // zero for what is in none
	Snapshot string   // ID; "" for what is of none
	Archive  string   // ID; "" likewise
	Key      string   // of the object: its path below the store's root
	What     string   // for people; holds no secret
	// Repairable says that [Vault.Repair] of its location puts it right.
	Repairable bool
}
