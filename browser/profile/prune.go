package profile

import "strings"

// droppable names what a profile can lose without losing any of the user's
// state: Chrome makes it again. It is a list of exclusions, so that a file
// that a later Chrome adds survives. What looks like a cache and is not
// (Service Worker/ScriptCache and CacheStorage, WebStorage, File System,
// GCM Store, *-wal, *-journal) is not on it.
//
// Names as found in Chromium 156; see also the keep-list of Chromium's
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

// Droppable reports whether the named file or folder of an archive carries
// nothing of the user's: a cache directly in the profile, a LevelDB log text,
// a lock, what Chrome writes into an extension's folder.
func Droppable(name string) bool {
	elements := strings.Split(name, "/")
	if len(elements) < 2 {
		return false
	}
	if elements[0] == Extensions {
		// Chrome makes its index of an extension's rules again when it is not there.
		return len(elements) > 2 && elements[2] == "_metadata"
	}
	if droppable[elements[1]] {
		return true
	}
	if elements[1] == "Extensions" {
		return false // an extension may name its files as it likes
	}
	switch last := elements[len(elements)-1]; last {
	case "LOG", "LOG.old", "LOCK":
		// LevelDB's own diary and its lock file; the store opens without them.
		return true
	default:
		return strings.HasPrefix(last, "Singleton")
	}
}
