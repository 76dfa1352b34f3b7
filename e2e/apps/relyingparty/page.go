package relyingparty

// page registers a passkey and signs in with one.
const page = `<!doctype html><meta charset="utf-8"><title>sign in</title><script>
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer ?? [])));
const challenge = async () => Uint8Array.from(
	atob((await (await fetch("/challenge")).text()).replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const send = async (path, body) => (await fetch(path, {method: "POST", body: JSON.stringify(body)})).text();

async function register(name) {
	const c = await navigator.credentials.create({publicKey: {
		rp: {id: "localhost", name: "a site"}, user: {id: new TextEncoder().encode(name), name, displayName: name},
		challenge: await challenge(), pubKeyCredParams: [{type: "public-key", alg: -7}],
		authenticatorSelection: {residentKey: "required", userVerification: "required"}, extensions: {largeBlob: {support: "preferred"}},
	}});
	return send("/register", {id: c.id, name, clientData: text(c.response.clientDataJSON),
		authData: text(c.response.getAuthenticatorData()), publicKey: text(c.response.getPublicKey())});
}

async function signIn() {
	const c = await navigator.credentials.get({publicKey: {rpId: "localhost", challenge: await challenge(), userVerification: "required"}});
	window.used = c.rawId;
	return send("/sign-in", {id: c.id, clientData: text(c.response.clientDataJSON), authData: text(c.response.authenticatorData),
		signature: text(c.response.signature), handle: text(c.response.userHandle)});
}

// blob writes or reads the large blob of the passkey that was used.
async function blob(write) {
	const c = await navigator.credentials.get({publicKey: {rpId: "localhost", challenge: await challenge(), userVerification: "required",
		allowCredentials: [{type: "public-key", id: window.used}],
		extensions: {largeBlob: write ? {write: new TextEncoder().encode(write)} : {read: true}}}});
	const result = c.getClientExtensionResults().largeBlob;
	return write ? String(result.written) : new TextDecoder().decode(result.blob);
}

// This signs in from the first script of the page.
if (location.search === "?at-once") window.atOnce = signIn();
addEventListener("message", async (e) => { if (e.data === "sign in") parent.postMessage(await signIn().catch(String), "*"); });
</script>`

// framed shows the page in a frame and makes it sign in.
const framed = `<!doctype html><title>framed</title>
<iframe src="%s/" allow="publickey-credentials-get *" onload="this.contentWindow.postMessage('sign in', '*')"></iframe>
<script>addEventListener("message", (e) => { window.answer = e.data; });</script>`
