package mux

import (
	"errors"
	"strings"
)

// Policy is what the policy table needs to know of the session.
type Policy struct {
	// FilesDir is the absolute path of the folder with the session's files:
	// what its pages may be given and where its downloads go. Empty: none, and
	// commands that name files are refused.
	FilesDir string
}

// rule says what becomes of a client's command, and why there is a rule.
type rule struct {
	why     string
	refused bool
	act     func(*call) error // rewrites the parameters, or says why not; nil lets all pass
}

// call is one client's command under judgement.
type call struct {
	*Policy
	params  fields
	visible func(target string) bool
	extensions
	changed bool // params were rewritten
}

// table is every rule, by method or by "Domain.*"; the method wins. What is in
// neither form is refused: a command that a new Chrome brings must be looked
// at first. Domains that hold a command which reads or writes files, runs
// programs, or reaches past the session's pages are listed command by command.
// It is never written to.
var table = []entry{
	// Addresses: a page may not show files or Chrome's own pages.
	{"Page.navigate Target.createTarget Network.loadNetworkResource", rule{act: urlIn("url"), why: "opens or reads the address"}},
	{"Fetch.continueRequest", rule{act: urlIn("url"), why: "sends a request elsewhere than the page asked"}},

	// Scripts: only in pages that clients may open.
	{"Page.addScriptToEvaluateOnNewDocument", rule{act: scriptIn("source"), why: "runs in every page to come"}},
	{"Page.addScriptToEvaluateOnLoad", rule{act: scriptIn("scriptSource"), why: "runs in every page to come"}},
	{"Page.reload", rule{act: scriptIn("scriptToEvaluateOnLoad"), why: "runs a script in the page that comes"}},
	{"Debugger.setBreakpoint Debugger.setBreakpointByUrl Debugger.setBreakpointOnFunctionCall", rule{act: scriptIn("condition"), why: "runs the condition in every page to come"}},

	// Files: only those in the session's folder, where downloads go whatever is named.
	{"DOM.setFileInputFiles", rule{act: filesIn("files"), why: "gives files to a page"}},
	{"Input.dispatchDragEvent", rule{act: drag, why: "drops files and addresses on a page"}},
	{"Browser.setDownloadBehavior Page.setDownloadBehavior", rule{act: downloadHere, why: "chooses where Chrome writes"}},
	{"Tracing.start", rule{act: tracing, why: "a perfetto configuration or the system back end can write files and trace the machine"}},

	// Other ways to send commands would bypass this table.
	{"Target.attachToTarget", rule{act: flatAttach, why: "nested messages would bypass the policy"}},
	{"Target.setAutoAttach", rule{act: flatAutoAttach, why: "nested messages would bypass the policy"}},
	{"Target.sendMessageToTarget", rule{refused: true, why: "nested messages would bypass the policy; attach with flatten: true"}},
	{"Target.exposeDevToolsProtocol", rule{refused: true, why: "a page would speak CDP past the policy"}},
	{"Target.openDevTools Target.getDevToolsTarget", rule{refused: true, why: "developer tools speak CDP past the policy"}},
	{"Target.setRemoteLocations", rule{refused: true, why: "Chrome would connect to other debuggers"}},
	{"Input.dispatchKeyEvent", rule{act: pageKeys, why: "with a native key code the key reaches Chrome's own shortcuts: developer tools, chrome: pages, quit"}},

	// Targets that clients do not see do not exist for them.
	{"Target.activateTarget Target.closeTarget Target.getTargetInfo Target.autoAttachRelated " +
		"Browser.getWindowForTarget", rule{act: visibleTarget, why: "the target may be hidden"}},
	{"Target.createBrowserContext", rule{act: plainContext, why: "universal network access lets a page read other origins"}},
	{"Target.attachToBrowserTarget Target.detachFromTarget Target.disposeBrowserContext " +
		"Target.getBrowserContexts Target.getTargets Target.setDiscoverTargets", rule{why: "stays within the session's browser"}},

	// The browser process and its machine.
	{"Browser.crash Browser.crashGpuProcess", rule{refused: true, why: "it would end the session for everyone"}},
	{"Browser.executeBrowserCommand", rule{refused: true, why: "it drives Chrome's own interface"}},
	{"Browser.getBrowserCommandLine SystemInfo.getInfo SystemInfo.getProcessInfo", rule{refused: true, why: "it tells of the machine"}},
	{"Browser.addMockCamera Browser.addPrivacySandboxEnrollmentOverride Browser.cancelDownload " +
		"Browser.close Browser.getGlobalPrivacyControl Browser.getHistogram Browser.getHistograms " +
		"Browser.getVersion Browser.getWindowBounds Browser.grantPermissions Browser.resetPermissions " +
		"Browser.setContentsSize Browser.setDockTile Browser.setGlobalPrivacyControl Browser.setPermission " +
		"Browser.setWindowBounds SystemInfo.getFeatureState", rule{why: "stays within the session's browser"}},
	{"Tracing.end Tracing.getCategories Tracing.getTrackEventDescriptor Tracing.recordClockSyncMarker " +
		"Tracing.requestMemoryDump", rule{why: "belongs to a trace that Tracing.start let through"}},
	{"DeviceAccess.selectPrompt", rule{refused: true, why: "it gives a page a device of the machine"}},

	// Whole domains.
	{"Extensions.*", rule{refused: true, why: "extensions are managed by the API"}},
	{"PWA.*", rule{refused: true, why: "it installs and starts programs"}},
	{"Tethering.*", rule{refused: true, why: "it opens ports of the machine"}},
	{"Cast.*", rule{refused: true, why: "it reaches devices in the machine's network"}},
	{"Accessibility.* Ads.* Animation.* Audits.* Autofill.* BackgroundService.* BluetoothEmulation.* CSS.* " +
		"CacheStorage.* Console.* CrashReportContext.* DOM.* DOMDebugger.* DOMSnapshot.* DOMStorage.* " +
		"Debugger.* DeviceAccess.* DeviceOrientation.* DigitalCredentials.* Emulation.* EventBreakpoints.* " +
		"FedCm.* Fetch.* FileSystem.* FindInPage.* HeadlessExperimental.* HeapProfiler.* IO.* IndexedDB.* " +
		"Input.* Inspector.* LayerTree.* Log.* Media.* Memory.* Network.* Overlay.* Page.* Performance.* " +
		"PerformanceTimeline.* Preload.* Profiler.* Runtime.* Schema.* Security.* ServiceWorker.* " +
		"SmartCardEmulation.* Storage.* WebAudio.* WebAuthn.* WebMCP.*", rule{why: "stays within the pages and storage of the session"}},
}

// rules are the table's rules by method, or by "Domain.*".
var rules = index(table)

// entry is one line of the table: methods separated by spaces.
type entry struct {
	methods string
	rule    rule
}

func index(entries []entry) map[string]rule {
	t := map[string]rule{}
	for _, e := range entries {
		for _, method := range strings.Fields(e.methods) {
			t[method] = e.rule
		}
	}
	return t
}

func ruleFor(method string) (rule, bool) {
	if r, ok := rules[method]; ok {
		return r, true
	}
	domain, _, _ := strings.Cut(method, ".")
	r, ok := rules[domain+".*"]
	return r, ok
}

// apply judges one command: the parameters to send, or the refusal.
func (p *Policy) apply(visible func(string) bool, x extensions, method string, params []byte) ([]byte, *cdpError) {
	r, known := ruleFor(method)
	if !known {
		return nil, &cdpError{codeNoMethod, "'" + method + "' is not known to Stasis"}
	}
	if r.refused {
		return nil, refusal(method, errors.New(r.why))
	}
	if r.act == nil {
		return params, nil
	}
	c := &call{Policy: p, visible: visible, extensions: x}
	if err := c.params.read(params); err != nil {
		return nil, &cdpError{codeParams, "Invalid parameters: " + err.Error()}
	}
	switch err := r.act(c); err {
	case nil:
	case errNoTarget:
		return nil, &cdpError{codeParams, err.Error()}
	default:
		return nil, refusal(method, err)
	}
	if !c.changed {
		return params, nil
	}
	return c.params.write(), nil
}

func refusal(method string, why error) *cdpError {
	return &cdpError{codeRefused, "Stasis does not allow " + method + ": " + why.Error()}
}

// harmless says whether a command may run in a page that clients may not open:
// what a client sends to any new page, and what leaves or closes it. None of
// these reads the page or runs a script in it.
func harmless(method string) bool {
	switch method {
	case "Page.close", "Page.navigate", "Page.stopLoading", "Page.bringToFront", "Page.getNavigationHistory",
		"Page.navigateToHistoryEntry", "Page.getFrameTree", "Page.setLifecycleEventsEnabled",
		"Runtime.runIfWaitingForDebugger":
		return true
	}
	domain, name, _ := strings.Cut(method, ".")
	return name == "enable" || name == "disable" || domain == "Target" || domain == "Browser" || domain == "Emulation"
}
