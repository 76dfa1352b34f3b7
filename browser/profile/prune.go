package profile

import "strings"

// droppable lists the names that a profile can lose without losing any of the user's
// state: Chrome creates them again. It lists what to exclude, so that a file that a later
// Chrome adds is kept. It does not list what only looks like a cache (Service
// Worker/ScriptCache and CacheStorage, WebStorage, File System, GCM Store, *-wal,
// *-journal unless it is empty).
//
// Names as found in Chromium 156. See also the keep-list in Chromium's
// chrome/browser/downgrade/snapshot_file_collector.cc.
var droppable = map[string]bool{
	"AutofillStrikeDatabase":                      true,
	"BudgetDatabase":                              true,
	"Cache":                                       true,
	"Code Cache":                                  true,
	"DawnGraphiteCache":                           true,
	"DawnWebGPUCache":                             true,
	"Download Service":                            true,
	"Feature Engagement Tracker":                  true,
	"GPUCache":                                    true,
	"GPUPersistentCache":                          true,
	"GrShaderCache":                               true,
	"GraphiteDawnCache":                           true,
	"Network Persistent State":                    true,
	"No_Vary_Search":                              true,
	"Reporting and NEL":                           true,
	"Segmentation Platform":                       true,
	"ShaderCache":                                 true,
	"Shared Dictionary":                           true,
	"Site Characteristics Database":               true,
	"VideoDecodeStats":                            true,
	"blob_storage":                                true,
	"chrome_cart_db":                              true,
	"commerce_subscription_db":                    true,
	"discounts_db":                                true,
	"heavy_ad_intervention_opt_out.db":            true,
	"optimization_guide_hint_cache_store":         true,
	"optimization_guide_model_store":              true,
	"parcel_tracking_db":                          true,
	"shared_proto_db":                             true,
	"declarative_performance_observer.db":         true, // as Reporting and NEL
	"declarative_performance_observer.db-journal": true,
	"DevToolsActivePort":                          true,
	"heavy_ad_intervention_opt_out.db-journal":    true,
}

// Droppable reports whether a file or folder of an archive has nothing of the user's: a
// cache directly in the profile, a LevelDB log text, a lock, or what Chrome writes into
// an extension's folder.
func Droppable(name string) bool {
	elements := strings.Split(name, "/")
	if len(elements) < 2 {
		return false
	}
	if elements[0] == Extensions {
		// Chrome rebuilds its index of an extension's rules if it is missing.
		return len(elements) > 2 && elements[2] == "_metadata"
	}
	if droppable[elements[1]] {
		return true
	}
	if elements[1] == "Extensions" {
		return false // an extension may name its files freely
	}
	switch last := elements[len(elements)-1]; last {
	case "LOG", "LOG.old", "LOCK":
		// These are LevelDB's text log and its lock file; the store opens without them.
		return true
	default:
		return strings.HasPrefix(last, "Singleton")
	}
}

// emptyJournal reports whether a file is an empty rollback journal of SQLite. To SQLite that is
// the same as none (https://www.sqlite.org/fileformat2.html#the_rollback_journal). A third of
// the files of a small profile are such journals.
func emptyJournal(name string, size int64) bool {
	return size == 0 && strings.HasSuffix(name, "-journal") && strings.HasPrefix(name, Default+"/") && !strings.HasPrefix(name, Default+"/Extensions/")
}
