package apply

import (
	"encoding/json"
	"fmt"

	"github.com/stasisd/stasis/state"
)

// TabScript is the JavaScript that applies a tab's own state before any script
// of the page runs (Page.addScriptToEvaluateOnNewDocument): window.name, and the
// session storage of the tab's frames. It is
// for the page's target and for those of its frames. It is empty where there
// is nothing to apply.
//
// Which area is a frame's own it finds by what the storage key is made of: the
// frame's origin, the site of the tab, and whether another site stands between.
//
// An area is written only while it is empty: a redirect of the page's own
// first script makes a second document, and by then the area is the site's.
func TabScript(tab state.Tab) string {
	areas := map[string][]state.Item{}
	site := state.Site(tab.URL)
	for _, area := range tab.Session {
		if key, ok := state.ParseStorageKey(area.StorageKey); ok && len(area.Items) > 0 {
			areas[key.String()] = area.Items
			if key.TopLevelSite != "" {
				site = key.TopLevelSite // as Chrome itself sees it
			}
		}
	}
	if tab.Name == "" && len(areas) == 0 {
		return ""
	}
	// Strings and string maps always encode.
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
