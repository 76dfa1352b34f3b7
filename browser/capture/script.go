package capture

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stasisd/stasis/state"
)

// Script is the JavaScript that lays a tab's own state down before any script
// of the page runs (Page.addScriptToEvaluateOnNewDocument): window.name, and
// with sessionStorage set also the session storage of the frames' origins. It
// is empty where there is nothing to lay down.
//
// An area is written only while it is empty: a redirect of the page's own
// first script makes a second document, and by then the area is the site's.
func Script(tab state.Tab, sessionStorage bool) string {
	areas := map[string][]state.Item{}
	if sessionStorage {
		for _, area := range tab.Session {
			if !Partitioned(area.StorageKey) && len(area.Items) > 0 {
				areas[strings.TrimSuffix(area.StorageKey, "/")] = area.Items
			}
		}
	}
	if tab.Name == "" && len(areas) == 0 {
		return ""
	}
	// Strings and string maps always encode.
	laid, _ := json.Marshal(areas)
	name, _ := json.Marshal(tab.Name)
	return fmt.Sprintf(`(() => {
  const areas = %s, name = %s;
  if (window === window.top && name && !window.name) window.name = name;
  try {
    const items = areas[location.origin];
    if (items && sessionStorage.length === 0) for (const i of items) sessionStorage.setItem(i.key, i.value);
  } catch (opaqueOrigin) {}
})()`, laid, name)
}
