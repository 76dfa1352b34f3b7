package apply

import (
	"encoding/json"
	"fmt"

	"github.com/stasisd/stasis/state"
)

// TabScript returns the JavaScript that applies a tab's own state before any script of
// the page runs (Page.addScriptToEvaluateOnNewDocument): window.name, and the session
// storage of the tab's frames. The script is for the page's target and for those of its
// frames. It is empty if there is nothing to apply.
//
// In each frame the script computes the storage key: from the frame's origin, the tab's
// site, and whether a frame of another site is above it.
//
// An area is written only while it is empty: if the page's first script redirects, a
// second document follows, and by then the area is the site's.
func TabScript(tab state.Tab) string {
	areas := map[string][]state.Item{}
	site := state.Site(tab.URL)
	for _, area := range tab.Session {
		if key, ok := state.ParseStorageKey(area.StorageKey); ok && len(area.Items) > 0 {
			areas[key.String()] = area.Items
			if key.TopLevelSite != "" {
				site = key.TopLevelSite // as Chrome itself computes it
			}
		}
	}
	if tab.Name == "" && len(areas) == 0 {
		return ""
	}
	// Encoding strings and maps of strings cannot fail.
	all, _ := json.Marshal(areas)
	name, _ := json.Marshal(tab.Name)
	top, _ := json.Marshal(site)
	return fmt.Sprintf(`(() => {
  const areas = %s, name = %s, site = %s;
  if (window === window.top && name && !window.name) window.name = name;
  const within = origin => {
    if (origin === "null" || !site) return false;
    const o = new URL(origin), s = new URL(site);
    return o.protocol === s.protocol && (o.hostname === s.hostname || o.hostname.endsWith("." + s.hostname));
  };
  try {
    const above = Array.from(location.ancestorOrigins);
    let key = location.origin + "/";
    if (above.length && !within(above.at(-1))) return;
    if (above.length && !within(location.origin)) key += "^0" + site;
    else if (above.some(origin => !within(origin))) key += "^31";
    const items = areas[key];
    if (items && sessionStorage.length === 0) for (const i of items) sessionStorage.setItem(i.key, i.value);
  } catch (opaqueOrigin) {}
})()`, all, name, top)
}
