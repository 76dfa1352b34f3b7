package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/session/answer"
)

// Each bad request gets one code and a message that names the fault. The service never
// receives the request.
func TestBadInput(t *testing.T) {
	r := newRig(t, nil)
	long := strings.Repeat("x", 257)
	create := func(body, code, names string) badInput { return badInput{"POST", "/v1/sessions", body, code, names} }
	patch := func(body, code, names string) badInput {
		return badInput{"PATCH", "/v1/users/alice", body, code, names}
	}
	check := func(fields, code, names string) badInput {
		return patch(`{"login_check":{"url":"https://a.example/",`+fields+`}}`, code, names)
	}
	for _, x := range []badInput{
		create(`{`, "invalid_request", "byte"),
		create(`{"goal":"x"} {}`, "invalid_request", "after top-level value"),
		create(`{"goal":"x","goal":"y"}`, "invalid_request", "goal"),
		create(`{"labels":{"a":"x","a":"y"}}`, "invalid_request", "labels.a"),
		create("{\"goal\":\"\xff\"}", "invalid_request", "UTF-8"),
		create(`[]`, "invalid_request", "an object"),
		create(`null`, "invalid_request", "an object"),
		create(`{"goal":5}`, "invalid_request", "goal: must be a string"),
		create(`{"max_steps":"5"}`, "invalid_request", "max_steps: must be an integer"),
		create(`{"idle_timeout_seconds":1.5}`, "invalid_request", "idle_timeout_seconds: must be an integer"),
		create(`{"idle_timeout_seconds":1e3}`, "invalid_request", "idle_timeout_seconds"),
		create(`{"wait_seconds":99999999999999999999}`, "invalid_request", "wait_seconds"),
		create(`{"persist":"yes"}`, "invalid_request", "persist: must be true or false"),
		create(`{"labels":[]}`, "invalid_request", "labels: must be an object"),
		create(`{"labels":{"a":1}}`, "invalid_request", "labels.a: must be a string"),
		create(strings.Repeat(`{"labels":`, 40)+`1`+strings.Repeat(`}`, 40), "invalid_request", "nested"),
		create(`{"goal":"`+strings.Repeat("x", maxBody)+`"}`, "too_large", "1048576"),
		create(`{"viewprt":{}}`, "unknown_field", `unknown field "viewprt": did you mean viewport?`),
		create(`{"restore_from":"a"}`, "unknown_field", "did you mean restore_from_environment_id or restore_from_session_id?"),
		create(`{"startUrl":"https://a.example/"}`, "unknown_field", "did you mean start_url?"),
		create(`{"viewport":{"width":100,"height":10,"heigth":1}}`, "unknown_field", `"viewport.heigth": did you mean height?`),
		create(`{"viewport":{"zoom_factor":2}}`, "unknown_field", "allowed are device_scale_factor, height, mobile, width"),
		{"POST", "/v1/prune?dry_run=true", `{}`, "unknown_field", `unknown parameter "dry_run": none is allowed`},
		{"POST", "/v1/prune", `{"dryrun":true}`, "unknown_field", "did you mean dry_run?"},
		create(`{"Goal":"x"}`, "unknown_field", "Goal"),
		create(`{"viewport":{}}`, "invalid_field", "viewport.width: is required"),
		create(`{"viewport":{"width":100}}`, "invalid_field", "viewport.height: is required"),
		create(`{"viewport":{"width":100,"height":0}}`, "invalid_field", "viewport.height: must be from 1 to 10000"),
		create(`{"viewport":{"width":100,"height":10,"device_scale_factor":99}}`, "invalid_field", "device_scale_factor"),
		create(`{"viewport":{"width":"100","height":10}}`, "invalid_request", "viewport.width: must be an integer"),
		create(`{"viewport":{"width":100,"height":10,"depth":1}}`, "unknown_field", "viewport.depth"),
		create(`{"user_agent":"a\nb"}`, "invalid_field", "user_agent"),
		create(`{"user_agent":"`+strings.Repeat("a", 1025)+`"}`, "invalid_field", "user_agent"),
		create(`{"goal":"\ud800"}`, "invalid_request", "at byte 9"),
		create(`{"labels":{"\udc00\ud800":"x"}}`, "invalid_request", "surrogate"),
		create(`{"locale":"german!"}`, "invalid_field", "locale"),
		create(`{"locale":"zz"}`, "invalid_field", "locale"),
		create(`{"locale":"de-ZY"}`, "invalid_field", "locale"),
		create(`{"locale":"en-x-own"}`, "invalid_field", "locale"),
		create(`{"timezone":"right/Europe/Berlin"}`, "invalid_field", "timezone"),
		create(`{"timezone":"localtime"}`, "invalid_field", "timezone"),
		create(`{"timezone":"Europe/Atlantis"}`, "invalid_field", "timezone"),
		create(`{"timezone":"../../etc/passwd"}`, "invalid_field", "timezone"),
		create(`{"timezone":"Local"}`, "invalid_field", "timezone"),
		create(`{"geolocation":{"latitude":1}}`, "invalid_field", "geolocation.longitude: is required"),
		create(`{"geolocation":{"latitude":91,"longitude":0}}`, "invalid_field", "geolocation.latitude: must be from -90 to 90"),
		create(`{"geolocation":{"latitude":"1","longitude":0}}`, "invalid_request", "geolocation.latitude: must be a number"),
		create(`{"geolocation":{"latitude":1,"longitude":0,"accuracy":-1}}`, "invalid_field", "geolocation.accuracy"),
		create(`{"extra_headers":{"a b":"c"}}`, "invalid_field", "extra_headers"),
		create(`{"extra_headers":{"X-A":"b\r\nCookie: c"}}`, "invalid_field", "extra_headers.X-A"),
		create(`{"extra_headers":{"Host":"c"}}`, "invalid_field", "extra_headers.Host"),
		create(`{"extra_headers":{"Proxy-Authorization":"c"}}`, "invalid_field", "extra_headers.Proxy-Authorization"),
		create(`{"extra_headers":{"X-A":"1","x-a":"2"}}`, "invalid_field", "extra_headers.x-a: occurs twice"),
		create(`{"extra_headers":{"Set-Cookie":"a=b"}}`, "invalid_field", "extra_headers.Set-Cookie"),
		create(`{"extra_headers":{"X-A":1}}`, "invalid_request", "extra_headers.X-A"),
		create(`{"proxy":{}}`, "invalid_field", "proxy.server: is required"),
		create(`{"proxy":{"server":"http://a.example"}}`, "invalid_field", "proxy.server"),
		create(`{"proxy":{"server":"http://a.example:0"}}`, "invalid_field", "1 to 65535"),
		create(`{"proxy":{"server":"http://a.example:99999"}}`, "invalid_field", "proxy.server"),
		create(`{"proxy":{"server":"http://u:p@a.example:1"}}`, "invalid_field", "proxy.server"),
		create(`{"proxy":{"server":"ftp://a.example:1"}}`, "invalid_field", "proxy.server"),
		create(`{"proxy":{"server":"http://a.example:1,direct://"}}`, "invalid_field", "proxy.server"),
		create(`{"proxy":{"server":"http://a.example:1","password":"p"}}`, "invalid_field", "proxy.password"),
		create(`{"proxy":{"server":"direct://","username":"u"}}`, "invalid_field", "proxy"),
		create(`{"permission_policy":{"default_decision":"ask"}}`, "invalid_field", "default_decision"),
		create(`{"permission_policy":{"rules":[{"permission":"telepathy","decision":"allow"}]}}`, "invalid_field", "must be one of background-sync"),
		create(`{"permission_policy":{"rules":[{"permission":"camera"}]}}`, "invalid_field", "permission_policy.rules[0].decision: is required"),
		create(`{"permission_policy":{"rules":[{"permission":"camera","decision":"allow","origin":"a.example"}]}}`, "invalid_field", "rules[0].origin"),
		create(`{"permission_policy":{"rules":[{"permission":"camera","decision":"allow"},{"permission":"camera","decision":"allow","origin":"https://a.example/x"}]}}`, "invalid_field", "permission_policy.rules[1].origin: must be"),
		create(`{"origins":{"include":["https://a.example/path"]}}`, "invalid_field", `must be an origin (https://a.example)`),
		create(`{"origins":{"include":["https://a.example"],"exclude":["b.example","*"]}}`, "invalid_field", "origins.exclude[1]"),
		create(`{"origins":{"include":"https://a.example"}}`, "invalid_request", "origins.include"),
		create(`{"origins":{"include":["a.example"]}}`, "invalid_field", "origins: needs something to restore"),
		create(`{"origins":{"only":[]}}`, "unknown_field", "origins.only"),
		create(`{"origins":{"include":["a.example"]},"on_live":"share"}`, "invalid_field", "on_live"),
		create(`{"webhook_url":""}`, "invalid_field", "webhook_url"),
		create(`{"webhook_url":7}`, "invalid_request", "webhook_url"),
		create(`{"webhook_url":"ftp://a.example/"}`, "invalid_field", "webhook_url: must be an http or https address"),
		create(`{"webhook_url":"https://a.example:99999/"}`, "invalid_field", "webhook_url"),
		create(`{"webhook_url":"https:///x"}`, "invalid_field", "webhook_url"),
		create(`{"webhook_url":"https://u:p@a.example/"}`, "invalid_field", "webhook_url"),
		create(`{"webhook_url":"https://a.example/`+strings.Repeat("x", 2000)+`"}`, "invalid_field", "webhook_url"),
		{"GET", "/v1/webhooks/deliveries?state=lost", "", "invalid_field", "pending, delivered, failed"},
		{"GET", "/v1/webhooks/deliveries?limit=0", "", "invalid_field", "limit"},
		{"GET", "/v1/webhooks/deliveries?start_after=A", "", "invalid_field", "start_after"},
		{"POST", "/v1/webhooks/deliveries/A..B/resend", "", "not_found", ""},
		{"PUT", "/v1/webhooks/secrets", `{"secret":"hunter2"}`, "invalid_field", "secret: must be whsec_"},
		{"PUT", "/v1/webhooks/secrets", `{"url":"ftp://a.example"}`, "invalid_field", "url"},
		{"PUT", "/v1/webhooks/secrets", `{"overlap_seconds":-1}`, "invalid_field", "overlap_seconds"},
		{"DELETE", "/v1/webhooks/secrets?url=a", "", "invalid_field", "url"},
		{"POST", "/v1/keys", `{"name":"x","quotas":{"sessions":0}}`, "invalid_field", "quotas.sessions"},
		{"PATCH", "/v1/keys/key-2", `{"quotas":{"cookies":1}}`, "unknown_field", "cookies"},
		{"PATCH", "/v1/keys/key-2", `{"quotas":{"bytes":-1}}`, "invalid_field", "quotas.bytes"},
		{"PATCH", "/v1/keys/key-2", `{"quotas":{"standbys":1}}`, "unsupported", "quotas.standbys"},
		{"PATCH", "/v1/keys/key-2", `{"name":"x"}`, "unknown_field", "name"},
		create(`{"auto_save":{"interval_seconds":0}}`, "invalid_field", "auto_save.interval_seconds: must be from 5 to 86400 (5s to 24h)"),
		create(`{"auto_save":{"keep":0}}`, "invalid_field", "auto_save.keep: must be from 1 to 100"),
		create(`{"auto_save":{"on":["login","sometimes"]}}`, "invalid_field", "auto_save.on[1]: must be one of navigation, login, disconnect"),
		create(`{"auto_save":{"on":["login","login"]}}`, "invalid_field", "auto_save.on[1]: login is given twice"),
		create(`{"auto_save":{"every":5}}`, "unknown_field", "auto_save.every"),
		create(`{"auto_save":"yes"}`, "invalid_request", "auto_save: must be true, false or an object"),
		create(`{"resume":true}`, "invalid_field", "resume: needs session_id"),
		create(`{"resume":1,"session_id":"a"}`, "invalid_request", "resume: must be true or false"),
		create(`{"resume":true,"session_id":"a","restore_from_session_id":"b"}`, "invalid_field", "resume"),
		create(`{"restart":"always"}`, "invalid_field", "restart: must be"),
		create(`{"restart":true}`, "invalid_request", "restart: must be a string"),
		create(`{"engine":"gecko"}`, "invalid_field", "chrome, shell"),
		create(`{"agent_session_type":"desktop"}`, "unsupported", "managed-cdp"),
		create(`{"environment_type":"ubuntu-1"}`, "unsupported", "chrome-1"),
		create(`{"session_id":"../../etc/passwd"}`, "invalid_field", "session_id"),
		create(`{"session_id":"UPPER"}`, "invalid_field", "session_id"),
		create(`{"user_id":"a\u0000b"}`, "invalid_field", "user_id: must be UTF-8 without control characters"),
		create(`{"user_id":"a\u0085"}`, "invalid_field", "user_id"),
		create(`{"restore_default_environment_from_user_id":"\n"}`, "invalid_field", "restore_default_environment_from_user_id"),
		create(`{"restore_from_session_id":""}`, "invalid_field", "restore_from_session_id"),
		create(`{"restore_from_environment_id":"a/b"}`, "invalid_field", "restore_from_environment_id"),
		create(`{"restore_default_environment_from_user_id":""}`, "invalid_field", "restore_default_environment_from_user_id"),
		create(`{"user_id":"`+long+`"}`, "invalid_field", "user_id"),
		create(`{"if_missing":"maybe"}`, "invalid_field", "error, fresh"),
		create(`{"on_live":"steal"}`, "invalid_field", "fork, share, wait, fail"),
		create(`{"on_timeout":"x"}`, "invalid_field", "save, discard"),
		create(`{"start_url":"file:///etc/passwd"}`, "invalid_field", "start_url"),
		create(`{"start_url":"chrome://settings"}`, "invalid_field", "start_url"),
		create(`{"start_url":"http:///x"}`, "invalid_field", "start_url"),
		create(`{"idle_timeout_seconds":0}`, "invalid_field", "1 to 86400"),
		create(`{"max_lifetime_seconds":604801}`, "invalid_field", "604800"),
		create(`{"wait_seconds":601}`, "invalid_field", "0 to 600"),
		create(`{"labels":{"`+long+`":""}}`, "invalid_field", "labels"),
		create(`{"labels":{"a":"`+long+`"}}`, "invalid_field", "labels.a"),
		create(`{"record":true}`, "invalid_request", "record"),
		create(`{"record":["video"]}`, "invalid_field", "record[0]: must be one of screenshot, console"),
		create(`{"record":["console","console"]}`, "invalid_field", "record[1]"),
		{"GET", "/v1/sessions/live-1/runs?limit=1", "", "unknown_field", "limit"},
		{"GET", "/v1/sessions/live-1/runs/run-1/events?after=-1", "", "invalid_field", "after"},
		{"GET", "/v1/sessions/live-1/runs/run-1/events?after=99999999999999999999", "", "invalid_request", "after"},
		{"GET", "/v1/sessions/live-1/runs/run-1/events?limit=1001", "", "invalid_field", "limit"},
		{"GET", "/v1/sessions/live-1/runs/run-1/events?sanitize=maybe", "", "invalid_request", "sanitize"},
		{"GET", "/v1/sessions/live-1/events?event_types=step,video", "", "invalid_field", "event_types: must be some of step, thought"},
		{"GET", "/v1/sessions/live-1/events?event_types=,", "", "invalid_field", "event_types"},
		{"GET", "/v1/sessions/live-1/events?history=true", "", "unknown_field", "history"},
		{"POST", "/v1/sessions?x=1", "", "unknown_field", "x"},
		{"GET", "/v1/sessions?page=1", "", "unknown_field", "page"},
		{"GET", "/v1/sessions?limit=0", "", "invalid_field", "limit"},
		{"GET", "/v1/sessions?limit=ten", "", "invalid_request", "limit: must be an integer"},
		{"GET", "/v1/sessions?limit=1&limit=2", "", "invalid_request", "limit"},
		{"GET", "/v1/sessions?status=asleep", "", "invalid_field", "status"},
		{"GET", "/v1/sessions?user_id=", "", "invalid_field", "user_id"},
		{"GET", "/v1/sessions?user_id=%zz", "", "invalid_request", "query"},
		{"GET", "/v1/sessions?user_id=%ff", "", "invalid_request", "UTF-8"},
		{"GET", "/v1/sessions/..%2f..%2fetc%2fpasswd", "", "session_not_found", "session"},
		{"GET", "/v1/sessions/nobody", "", "session_not_found", "nobody"},
		{"GET", "/v1/sessions/NOBODY", "", "session_not_found", `there is no session "NOBODY" for this key`},
		{"GET", "/v1/sessions/%ff", "", "invalid_request", "session_id"},
		{"DELETE", "/v1/sessions/", "", "not_found", ""},
		{"DELETE", "/v1/sessions/NOBODY?save_snapshot_mode=filesystem", "", "session_not_found", ""},
		{"DELETE", "/v1/sessions/live-1?save_snapshot_mode=memory&origins_include=a.example", "", "invalid_field", "filesystem"},
		{"DELETE", "/v1/sessions/live-1?save_snapshot_mode=filesystem&origins_exclude=a.example,,b.example", "", "invalid_field", "origins_exclude[1]"},
		{"DELETE", "/v1/sessions/live-1?save_snapshot_mode=disk", "", "invalid_field", "none, filesystem, memory"},
		{"DELETE", "/v1/sessions/live-1?save_as_default=true", "", "invalid_field", "save_as_default"},
		{"DELETE", "/v1/sessions/live-1?save_as_default=yes", "", "invalid_request", "save_as_default: must be true or false"},
		{"DELETE", "/v1/sessions/live-1?default_conflict=win", "", "invalid_field", "keep, overwrite"},
		{"DELETE", "/v1/sessions/live-1?force=true", "", "unknown_field", "force"},
		{"DELETE", "/v1/sessions?all=true&user_id=bob", "", "invalid_field", "all"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"mode":"memory"}`, "unsupported", "mode: a session that continues"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"mode":"disk"}`, "invalid_field", "mode: must be one of filesystem"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"default_conflict":"win"}`, "invalid_field", "keep, overwrite"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"label":"` + long + `"}`, "invalid_field", "label"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"save_as_default":1}`, "invalid_request", "save_as_default: must be true or false"},
		{"POST", "/v1/sessions/live-1/snapshots", `{"wait":true}`, "unknown_field", "wait"},
		{"POST", "/v1/sessions/NOBODY/snapshots", ``, "session_not_found", ""},
		{"POST", "/v1/sessions/live-1/message", `{}`, "invalid_field", "message: is required"},
		{"POST", "/v1/sessions/live-1/message", `{"message":""}`, "invalid_field", "message: must not be empty"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"x","type":"thought"}`, "invalid_field", "type: must be one of USER, THOUGHT, QUESTION, DONE, ERROR, LOG, TOOL"},
		{"POST", "/v1/sessions/live-1/message", `{"message":{"a":1},"type":"LOG"}`, "invalid_field", "message: must be a string; only a message with type DONE may have an object"},
		{"POST", "/v1/sessions/live-1/message", `{"message":[1],"type":"DONE"}`, "invalid_request", "message: must be a string, or an object with type DONE, not an array"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"x","type":"DONE","result":1}`, "invalid_field", "result: is allowed only with type TOOL"},
		{"POST", "/v1/sessions/live-1/message", `{"type":"TOOL"}`, "invalid_field", "name: is required with type TOOL"},
		{"POST", "/v1/sessions/live-1/message", `{"type":"TOOL","name":"click","arguments":"x"}`, "invalid_request", "arguments: must be an object, not a string"},
		{"POST", "/v1/sessions/live-1/message", `{"type":"TOOL","name":"read","result":"` + strings.Repeat("x", 256<<10) + `"}`, "invalid_field", "result: must be at most 262144 bytes"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"` + strings.Repeat("x", 64<<10+1) + `"}`, "invalid_field", "message: must be at most 65536 bytes"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"x","start_url":"file:///etc/passwd"}`, "invalid_field", "start_url"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"x","config_updates":{"agent_name":"y"}}`, "unsupported", "config_updates.agent_name"},
		{"POST", "/v1/sessions/live-1/message", `{"message":"x","config_updates":[]}`, "invalid_request", "config_updates"},
		{"GET", "/v1/sessions/live-1/messages?after_id=-1", "", "invalid_field", "after_id"},
		{"GET", "/v1/sessions/live-1/messages?after_id=x", "", "invalid_request", "after_id"},
		{"GET", "/v1/sessions/live-1/messages?limit=5", "", "unknown_field", "limit"},
		{"POST", "/v1/memory/v2/session", `{"open_tasks":[]}`, "invalid_field", "session_id: is required"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"latest"}`, "invalid_field", "session_id: must not be latest"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"a\nb"}`, "invalid_field", "session_id: must be UTF-8 without control"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","event":"Checkpoint"}`, "invalid_field", "event: must be one of pre_compact, session_end, checkpoint"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","open_tasks":["a",""]}`, "invalid_field", "open_tasks[1]: must not be empty"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","open_tasks":[null]}`, "invalid_request", "open_tasks[0]: must be a string"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","files_modified":"a"}`, "invalid_request", "files_modified: must be an array"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","extra":[]}`, "invalid_request", "extra: must be an object"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","replace":"yes"}`, "invalid_request", "replace: must be true or false"},
		{"POST", "/v1/memory/v2/session", `{"session_id":"s","open_tasks":["` + strings.Repeat("x", 10<<20) + `"]}`, "too_large", "1048576"},
		{"POST", "/v1/sessions/live-1/navigate", `{}`, "invalid_field", "url: is required"},
		{"POST", "/v1/sessions/live-1/navigate", `{"url":"javascript:alert(1)"}`, "invalid_field", "url"},
		{"POST", "/v1/sessions/live-1/pause", `{"now":true}`, "unknown_field", "now"},
		{"GET", "/v1/sessions/live-1/cdp", "", "invalid_request", "Upgrade: must be websocket"},
		{"GET", "/v1/connect", "", "invalid_request", "Upgrade: must be websocket"},
		{"GET", "/v1/models?filter=x", "", "invalid_field", "filter"},
		{"POST", "/v1/keys", `{}`, "invalid_field", "name"},
		{"POST", "/v1/keys", `{"name":"x","rights":["root"]}`, "invalid_field", "rights[0]"},
		{"POST", "/v1/keys", `{"name":"x","rights":["use","use"]}`, "invalid_field", "rights[1]"},
		{"POST", "/v1/keys", `{"name":"x","rights":[]}`, "invalid_field", "rights"},
		{"POST", "/v1/keys", `{"name":"x","rights":[null]}`, "invalid_request", "rights[0]"},
		{"GET", "/v1/snapshots?user_id=", "", "invalid_field", "user_id"},
		{"GET", "/v1/snapshots?limit=1001", "", "invalid_field", "limit"},
		{"GET", "/v1/snapshots?start_after=..%2fx", "", "invalid_field", "start_after"},
		{"POST", "/v1/snapshots/snap-1/verify", `{"deep":true}`, "unknown_field", "deep"},
		{"POST", "/v1/snapshots/..%2fx/verify", "", "snapshot_not_found", "snapshot"},
		{"POST", "/v1/prune", `{"all":true,"user_id":"bob"}`, "invalid_field", "all"},
		{"POST", "/v1/prune", `{"user_id":""}`, "invalid_field", "user_id"},
		{"POST", "/v1/prune", `{"dryrun":true}`, "unknown_field", "dryrun"},
		{"POST", "/v1/prune?dry_run=true", "", "unknown_field", "dry_run"},
		patch(`{"retention":{}}`, "invalid_field", "keeps nothing"),
		patch(`{"retention":{"keep_labelled":false}}`, "invalid_field", "keeps nothing"),
		patch(`{"retention":{"keep_last":0}}`, "invalid_field", "retention.keep_last: must be from 1 to 1000000"),
		patch(`{"retention":{"keep_within_seconds":-1,"keep_last":1}}`, "invalid_field", "retention.keep_within_seconds"),
		patch(`{"retention":{"keep_last":"all"}}`, "invalid_request", "retention.keep_last: must be an integer"),
		patch(`{"retention":{"keep_daily":7}}`, "unknown_field", "retention.keep_daily"),
		{"GET", "/v1/snapshots?session_id=s", "", "unknown_field", "session_id"},
		{"PUT", "/v1/users/alice/default", `{"if_version":1}`, "invalid_field", "snapshot_id"},
		{"PUT", "/v1/users/alice/default", `{"snapshot_id":"../x"}`, "invalid_field", "snapshot_id"},
		{"PUT", "/v1/users/alice/default", `{"snapshot_id":"s","if_version":-1}`, "invalid_field", "if_version"},
		{"GET", "/v1/sessions?user_id=a%00", "", "invalid_field", "user_id"},
		{"POST", "/v1/keys", `{"name":"x","user_id":"a\tb"}`, "invalid_field", "user_id"},
		{"GET", "/v1/users/" + long + "/default", "", "user_not_found", ""},
		{"GET", "/v1/users/a%00/default", "", "user_not_found", ""},
		patch(`[]`, "invalid_request", "an object"),
		patch(`null`, "invalid_request", "an object"),
		patch(`{"login_chek":null}`, "unknown_field", "login_chek"),
		patch(`{"standby":true}`, "invalid_request", "standby: must be an integer"),
		patch(`{"standby":11}`, "invalid_field", "standby: must be from 0 to 10"),
		patch(`{"quotas":{"cookies":1}}`, "unknown_field", "quotas.cookies"),
		patch(`{"quotas":{"sessions":0}}`, "invalid_field", "quotas.sessions: must be from 1"),
		patch(`{"egress":{"deny":["a.example/"]}}`, "invalid_field", "egress.deny[0]: must be a network"),
		patch(`{"login_check":true}`, "invalid_request", "login_check: must be an object"),
		patch(`{"login_check":{}}`, "invalid_field", "login_check.url: is required"),
		patch(`{"login_check":{"url":"https://a.example/"}}`, "invalid_field", "at least one of status, selector, text, cookie"),
		patch(`{"login_check":{"url":"http://user:pw@a.example/","status":200}}`, "invalid_field", "login_check.url: must not have a user name"),
		patch(`{"login_check":{"url":"data:,x","status":200}}`, "invalid_field", "login_check.url: must be an http: or https: URL"),
		patch(`{"login_check":{"url":"https:///x","status":200}}`, "invalid_field", "login_check.url"),
		check(`"absent_selector":"#in"`, "invalid_field", "at least one of"),
		check(`"status":99`, "invalid_field", "login_check.status: must be from 100 to 599"),
		check(`"status":"ok"`, "invalid_request", "login_check.status: must be an integer"),
		check(`"text":""`, "invalid_field", "login_check.text"),
		check(`"selector":"`+strings.Repeat("x", 4097)+`"`, "invalid_field", "login_check.selector: must be at most 4096"),
		check(`"selector":"h1["`, "invalid_field", "login_check.selector: must be a CSS selector"),
		check(`"text":"x","absent_selector":"#in >"`, "invalid_field", "login_check.absent_selector: must be a CSS selector"),
		check(`"cookie":"a=b"`, "invalid_field", "login_check.cookie"),
		check(`"cookie":"sid","timeout_seconds":0`, "invalid_field", "login_check.timeout_seconds: must be from 1 to 60"),
		check(`"cookie":"sid","timeout_seconds":61`, "invalid_field", "from 1 to 60"),
		check(`"cookie":"sid","before_default":"yes"`, "invalid_request", "login_check.before_default"),
		check(`"cookie":"sid","check_every_seconds":0`, "invalid_field", "login_check.check_every_seconds: must be from 60 to 2592000 (1m to 30d)"),
		check(`"cookie":"sid","check_every_seconds":2592001`, "invalid_field", "login_check.check_every_seconds: must be from 60 to 2592000"),
		check(`"cookie":"sid","check_every_seconds":"1h"`, "invalid_request", "login_check.check_every_seconds: must be an integer"),
		check(`"cookie":"sid","retries":null`, "unknown_field", "login_check.retries"),
		{"PATCH", "/v1/users/" + long, `{}`, "user_not_found", ""},
		{"PATCH", "/v1/users/alice?x=1", `{}`, "unknown_field", "x"},
		{"POST", "/v1/users/alice/default/check", `{"url":"https://a.example/"}`, "unknown_field", "url"},
		{"GET", "/v1/sessions/live-1/snapshots/latest", "", "snapshot_not_found", "no snapshot"},
		{"GET", "/v1/snapshots/a%2fb", "", "snapshot_not_found", ""},
		{"GET", "/v1/sessions/live-1/files/..", "", "file_not_found", ""},
		{"GET", "/v1/sessions/live-1/files/..%2f..%2fetc%2fpasswd", "", "file_not_found", ""},
		{"POST", "/v1/sessions/live-1/files?name=..%2fx", "x", "invalid_field", "name"},
		{"POST", "/v1/sessions/live-1/files", "x", "invalid_field", "name"},
		{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/latest?latest=false", document, "invalid_field", "latest: must not be false"},
		{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/latest?latest=yes", document, "invalid_request", "latest: must be true or false"},
		{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/latest?x=1", document, "unknown_field", "x"},
		{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/%ff", document, "invalid_request", "snapshot_id"},
		{"GET", "/v1/sessions/any/scopes/%ff/desk/snapshots", "", "invalid_request", "scope: "},
		{"GET", "/v1/sessions/any/scopes/agent/%ff/manifest", "", "invalid_request", "scope_id: "},
		{"DELETE", "/v1/sessions/%ff/scopes", "", "invalid_request", "session_id: "},
		{"GET", "/v1/sessions/any/scopes/agent/desk/snapshots?limit=1001", "", "invalid_field", "limit: must be from 1 to 1000"},
		{"GET", "/v1/sessions/any/scopes/agent/desk/snapshots?start_after=..%2fx", "", "invalid_field", "start_after: must be a snapshot ID"},
		{"GET", "/v1/sessions/any/scopes/agent/desk", "", "not_found", "route"},
		{"GET", "/v2/sessions", "", "not_found", "route"},
		{"PATCH", "/v1/sessions", "", "method_not_allowed", "PATCH"},
	} {
		answer, body := r.do(t, x.method, x.path, x.body)
		var got errorAnswer
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%.80s: %v: %s", x, err, body)
			continue
		}
		if string(got.Code) != x.code || answer.StatusCode != statusOf(got.Code) || !strings.Contains(got.Message, x.names) {
			t.Errorf("%s %.40s %.60s: got %d %s, want %s with %q", x.method, x.path, x.body, answer.StatusCode, body, x.code, x.names)
		}
		if allow := answer.Header.Get("Allow"); (allow != "") != (x.code == "method_not_allowed") {
			t.Errorf("%s %s: Allow is %q", x.method, x.path, allow)
		}
		if got.RequestID == "" || got.RequestID != answer.Header.Get("X-Request-Id") {
			t.Errorf("%s %s: request_id %q, header %q", x.method, x.path, got.RequestID, answer.Header.Get("X-Request-Id"))
		}
		if n := len(r.creates) + len(r.ends) + len(r.endedUsers) + len(r.users) + len(r.owners) + len(r.uploads); n != 0 || r.settings.LoginCheck != nil {
			t.Fatalf("%s %s %.60s: reached the service", x.method, x.path, x.body)
		}
	}
}

type badInput struct{ method, path, body, code, names string }

// A field that is known and not supported is refused whatever its value.
func TestUnsupportedFields(t *testing.T) {
	r := newRig(t, nil)
	const path = "/v1/sessions/live-1/message"
	for _, value := range []string{`false`, `""`, `{}`, `[]`, `0`} {
		if _, body := r.do(t, "POST", path, `{"message":"m","config_updates":{"x":`+value+`}}`); !strings.Contains(body, `"unsupported"`) || !strings.Contains(body, "config_updates") {
			t.Errorf("%s: got %s", value, body)
		}
	}
}

func TestWarnUnknownFieldsListsThem(t *testing.T) {
	r := newRig(t, func(o *Options) { o.WarnUnknownFields = true })
	req := `{"viewprt":{},"goal":"x"}`
	plain := r.client.Transport
	r.client.Transport = nil // the request is not as described, and passes here
	_, body := r.do(t, "POST", "/v1/sessions", req)
	r.client.Transport = plain
	var got answer.Session
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"viewprt"}, got.IgnoredFields); diff != "" {
		t.Error(diff)
	}
	if answer, _ := r.do(t, "GET", "/v1/sessions?x=1", ""); answer.StatusCode != 422 {
		t.Errorf("parameters stay strict: got %d", answer.StatusCode)
	}
}

func TestAuthentication(t *testing.T) {
	r := newRig(t, nil)
	for _, x := range []struct {
		name, path string
		headers    []string
		status     int
	}{
		{"no key", "/v1/me", []string{"Authorization: "}, 401},
		{"wrong key", "/v1/me", []string{"Authorization: Bearer nope"}, 401},
		{"another scheme", "/v1/me", []string{"Authorization: Basic " + goodKey}, 401},
		{"bearer in small letters", "/v1/me", []string{"Authorization: bearer " + goodKey}, 200},
		{"x-api-key", "/v1/me", []string{"Authorization: ", "X-Api-Key: " + goodKey}, 200},
		{"key in the URL", "/v1/me?api_key=" + goodKey, []string{"Authorization: "}, 401},
		{"ticket where a key is needed", "/v1/sessions/live-1?ticket=" + goodTicket, []string{"Authorization: "}, 401},
		{"ticket", "/v1/sessions/live-1/json/list?ticket=" + goodTicket, []string{"Authorization: "}, 200},
		{"ticket of another session", "/v1/sessions/ended-1/json/list?ticket=" + goodTicket, []string{"Authorization: "}, 401},
		{"connect's ticket", "/v1/sessions/live-1/json/list?ticket=" + oneTicket, []string{"Authorization: "}, 401},
		{"nobody needed", "/healthz", []string{"Authorization: "}, 200},
	} {
		answer, body := r.do(t, "GET", x.path, "", x.headers...)
		if answer.StatusCode != x.status {
			t.Errorf("%s: got %d %s, want %d", x.name, answer.StatusCode, body, x.status)
		}
	}
	for headers, says := range map[[2]string]string{
		{"Authorization: "}:                    "send one in the header Authorization: Bearer KEY, or x-api-key: KEY",
		{"Authorization: Bearer nope"}:         "Authorization: ",
		{"Authorization: Basic eA=="}:          "Authorization: must be Bearer KEY",
		{"Authorization: ", "X-Api-Key: nope"}: "x-api-key: ",
	} {
		if _, body := r.do(t, "GET", "/v1/me", "", slices.DeleteFunc(headers[:], func(h string) bool { return h == "" })...); !strings.Contains(body, says) {
			t.Errorf("%q: got %s, want %q", headers, body, says)
		}
	}
	for _, secret := range []string{goodKey, goodTicket, oneTicket, "nope"} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, r.log)
		}
	}
}
