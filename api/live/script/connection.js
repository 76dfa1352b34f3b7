// The connection to the daemon, which starts when the page is complete.
const ended = new Map([[4001, "The session has ended."], [4003, "The API key of this link was deleted."]]);
const unreachable = "Stasis cannot be reached, or the session has too many viewers. Connecting again…";

let socket;
function connect() {
  socket = new WebSocket(route("socket").replace(/^http/, "ws"));
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => (typeof data === "string" ? receive(JSON.parse(data)) : draw(data));
  let opened = false;
  socket.onopen = () => { opened = true; };
  socket.onclose = ({ code }) => {
    picture.classList.add("off");
    for (const show of [ask, pick, choose]) show({ open: false });
    clearNotice();
    state = { ...state, control: false };
    if (state.type) render();
    role.textContent = ended.has(code) ? "Ended" : "Connecting…";
    note.textContent = ended.get(code) ?? (opened ? "The connection was lost. Connecting again…" : unreachable);
    if (!ended.has(code)) setTimeout(connect, 2000);
  };
}

const receive = (message) => on[message.type](message);

function send(type, fields) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, ...fields }));
}

// control sends input, which only a viewer with control may give.
function control(type, fields) {
  if (state.control) send(type, fields);
}

connect();
