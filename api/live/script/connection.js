// The connection to the daemon, which starts when the page is complete.
const ended = new Map([[4001, "The session has ended."], [4003, "The API key of this link was deleted."], [4004, "This link has ended. Ask for another one."]]);
const gone = "The session has ended, or this link is no longer valid.";
const unreachable = "Stasis cannot be reached, or the session has too many viewers. Connecting again…";

let socket;
let over = false; // there is nothing more to see
function connect() {
  over = false;
  const mine = new WebSocket(route("socket").replace(/^http/, "ws"));
  socket = mine;
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => (typeof data === "string" ? receive(JSON.parse(data)) : draw(data));
  let opened = false;
  socket.onopen = () => { opened = true; };
  socket.onclose = async ({ code }) => {
    if (mine !== socket) return;
    picture.classList.add("off");
    for (const q of [asking, picking, choosing]) q.close();
    clearNotice();
    state = { ...state, control: false };
    if (state.type) render();
    const why = ended.get(code) ?? (opened || !await refused() ? undefined : gone);
    if (mine !== socket) return;
    over = why !== undefined;
    role.textContent = over ? "Ended" : "Connecting…";
    note.textContent = why ?? (opened ? "The connection was lost. Connecting again…" : unreachable);
    if (!over) return setTimeout(connect, 2000);
    for (const panel of [filesPanel, sharePanel]) panel.close();
  };
}

// refused reports whether the daemon no longer accepts the page's ticket.
const refused = () => fetch(`${location.pathname}${location.search}`, { headers: { Accept: "application/json" } }).then((answer) => answer.status === 401, () => false);

const receive = (message) => on[message.type](message);

function send(type, fields) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, ...fields }));
}

// control sends input, which only a viewer with control may give.
function control(type, fields) {
  if (state.control) send(type, fields);
}

connect();
