package main

// The guards between CDP clients, pages and the machine.

const policyFile = "browser/mux/policy.go"

var clients = []guard{
	{
		name:    "cdp-addresses",
		keeps:   "no command opens a file or one of Chrome's own pages",
		without: []edit{{policyFile, `rule{act: urlIn("url"), why: "opens or reads the address"}`, `rule{why: "opens or reads the address"}`}},
		test:    "TestAttack$/addresses that show files", fails: "was not refused",
	},
	{
		name:    "cdp-request-addresses",
		keeps:   "no paused request is sent to a file",
		without: []edit{{policyFile, `rule{act: urlIn("url"), why: "sends a request to another address"}`, `rule{why: "sends a request to another address"}`}},
		test:    "TestAttack$/commands that read files", fails: "Fetch.continueRequest",
	},
	{
		name:    "cdp-files",
		keeps:   "no command gives a page a file of the machine",
		without: []edit{{policyFile, `rule{act: filesIn("files"), why: "gives files to a page"}`, `rule{why: "gives files to a page"}`}},
		test:    "TestAttack$/files given to a page", fails: "DOM.setFileInputFiles",
	},
	{
		name:    "cdp-drops",
		keeps:   "no drop gives a page a file of the machine",
		without: []edit{{policyFile, `rule{act: drag, why: "drops files and addresses on a page"}`, `rule{why: "drops files and addresses on a page"}`}},
		test:    "TestAttack$/files given to a page", fails: "Input.dispatchDragEvent",
	},
	{
		name:    "cdp-downloads",
		keeps:   "no client chooses the folder of downloads",
		without: []edit{{policyFile, `rule{act: downloadHere, why: "chooses where Chrome writes"}`, `rule{why: "chooses where Chrome writes"}`}},
		test:    "TestAttack$/downloads to other places", fails: "loot",
	},
	{
		name:    "cdp-processes",
		keeps:   "no command shows the processes of the machine",
		without: []edit{{policyFile, `{"Browser.getBrowserCommandLine SystemInfo.getInfo SystemInfo.getProcessInfo", rule{refused: true,`, `{"Browser.getBrowserCommandLine SystemInfo.getInfo SystemInfo.getProcessInfo", rule{`}},
		test:    "TestAttack$/commands that reach Chrome", fails: "SystemInfo.getProcessInfo",
	},
	{
		name:    "cdp-ports",
		keeps:   "no command opens ports of the machine",
		without: []edit{{policyFile, `{"Tethering.*", rule{refused: true,`, `{"Tethering.*", rule{`}},
		test:    "TestAttack$/commands that reach Chrome", fails: "Tethering.bind",
	},
	{
		name:    "cdp-extensions",
		keeps:   "no command loads an extension from a folder",
		without: []edit{{policyFile, `{"Extensions.*", rule{refused: true,`, `{"Extensions.*", rule{`}},
		test:    "TestAttack$/commands that reach Chrome", fails: "Extensions.loadUnpacked",
	},
	{
		name:    "cdp-nested",
		keeps:   "no nested message passes the table of commands",
		without: []edit{{policyFile, `{"Target.sendMessageToTarget", rule{refused: true,`, `{"Target.sendMessageToTarget", rule{`}},
		test:    "TestAttack$/messages past the policy", fails: "Target.sendMessageToTarget",
	},
	{
		name:    "cdp-clients",
		keeps:   "no client uses the CDP session of another client",
		without: []edit{{"browser/mux/sessions.go", `s != nil && s.owner == p && s.id != p.root {`, `s != nil && s.id != p.root {`}},
		test:    "TestAttack$/messages past the policy", fails: "used another client's CDP session",
	},
	{
		name:  "user-ids",
		keeps: "each Chrome runs as its own user, who cannot read the folders or signal the processes of others",
		without: []edit{
			{"browser/launch/uids.go", `		if !p.taken[uid] && !alive[uid] {`, `		if uid == p.uids.Base || !p.taken[uid] && !alive[uid] {`},
			{"browser/launch/uids.go", `			p.next = (offset + 1) % p.uids.Count`, `			p.next = 0`},
		},
		test: "TestAttack$/processes and folders of another", fails: "users of the two Chromes",
	},
	{
		name:  "run-folders",
		keeps: "no user of the machine reads the folder of a session",
		without: []edit{
			{"browser/launch/dir.go", `	if err := os.Mkdir(d.Path, 0o700); err != nil {
		return err
	}
`, `	if err := os.Mkdir(d.Path, 0o755); err != nil {
		return err
	}
`},
		},
		test: "TestAttack$/processes and folders of another", fails: "lists",
	},
	{
		name:    "landlock",
		keeps:   "Chrome can read no files of the machine but the system's libraries",
		without: []edit{{"browser/launch/landlock_on.go", `const enforceLandlock = true`, `const enforceLandlock = false`}},
		test:    "TestLandlockLeavesNothingToRead$/root", fails: "opened (-want +got)",
	},
	{
		name:    "links-listed",
		keeps:   "links and pipes among the files of a session are not listed",
		without: []edit{{"session/files/files.go", `if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), partPrefix) {`, `if err != nil || strings.HasPrefix(e.Name(), partPrefix) {`}},
		test:    "TestAttack$/links among the files", fails: "is listed",
	},
	{
		name:  "links-followed",
		keeps: "the API reads no file of the machine through a link among the files of a session",
		without: []edit{
			{"session/files/files.go", `	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
`, `	here, _ := f.Open(".")
	file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d/%s", here.Fd(), name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
`},
			{"session/files/files.go", `	"errors"
`, `	"errors"
	"fmt"
`},
		},
		also: "both O_NOFOLLOW and os.Root",
		test: "TestAttack$/links among the files", fails: "GET l1",
	},
}
