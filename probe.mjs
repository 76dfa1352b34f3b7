// usage: node probe.mjs "<extra flags>" 
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import WebSocket from 'ws';
import http from 'node:http';
const page=`<!doctype html><title>t</title><script>
window.ticks=0;window.frames_=0;setInterval(()=>ticks++,20);(function f(){frames_++;requestAnimationFrame(f)})();
window.log=[];document.addEventListener('visibilitychange',()=>log.push(document.visibilityState));
addEventListener('focus',()=>log.push('focus'));addEventListener('blur',()=>log.push('blur'));
</script>`;
const srv=http.createServer((q,r)=>{r.setHeader('content-type','text/html');r.end(page)}).listen(0,'127.0.0.1');
await new Promise(r=>srv.on('listening',r));
const base='http://127.0.0.1:'+srv.address().port+'/';
const dir=fs.mkdtempSync('/tmp/s/a/prof-');
const shell=process.env.SHELLENG;
const flags=shell?['--no-sandbox','--remote-debugging-port=0','--user-data-dir='+dir,'--disable-gpu','--window-size=1280,813']:
['--no-sandbox','--remote-debugging-port=0','--user-data-dir='+dir,'--ozone-platform=headless','--ozone-override-screen-size=1920,1080','--window-size=1280,900','--enable-features=CDPScreenshotNewSurface','--disable-background-networking','--disable-component-update','--disable-sync','--disable-field-trial-config','--keep-alive-for-test','--no-first-run','--no-default-browser-check','--password-store=basic','--allow-pre-commit-input',
'--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,NetworkTimeServiceQuerying,AutofillServerCommunication,WebUIOmniboxPopup,WebUIOmniboxAimPopup,UrgentPageDiscarding'];
const p=spawn(shell?'/usr/lib/chromium/chromium-headless-shell'.replace('/usr/lib/chromium/',fs.existsSync('/usr/lib/chromium/chromium-headless-shell')?'/usr/lib/chromium/':'/usr/bin/'):'/usr/lib/chromium/chromium',[...flags,...(process.argv[2]||'').split(' ').filter(Boolean),'about:blank'],{stdio:['ignore','ignore','pipe']});
const url=await new Promise(r=>{let b='';p.stderr.on('data',d=>{b+=d;const m=/ws:\/\/\S+/.exec(b);if(m)r(m[0])})});
const ws=new WebSocket(url,{maxPayload:1<<28});await new Promise(r=>ws.on('open',r));
let id=0;const pend=new Map();export const events=[];
ws.on('message',m=>{m=JSON.parse(m);if(m.id){const [a,b]=pend.get(m.id);m.error?b(new Error(m.error.message)):a(m.result)}else events.push(m)});
export const call=(method,params={},sessionId)=>new Promise((a,b)=>{pend.set(++id,[a,b]);ws.send(JSON.stringify({id,method,params,sessionId}))});
export const attach=async t=>(await call('Target.attachToTarget',{targetId:t,flatten:true})).sessionId;
export const ev=async(s,e)=>{const r=await Promise.race([call('Runtime.evaluate',{expression:e,returnByValue:true,awaitPromise:true},s),new Promise(r=>setTimeout(()=>r({result:{value:'HUNG'}}),5000))]);return r.result.value};
export const sleep=t=>new Promise(r=>setTimeout(r,t));
export const rate=async(ss,ms=3000)=>{const a=await Promise.all(ss.map(s=>ev(s,'[ticks,frames_]')));await sleep(ms);const b=await Promise.all(ss.map(s=>ev(s,'[ticks,frames_,document.visibilityState,document.hasFocus(),log.join()]')));return b.map((x,i)=>({ticks:((x[0]-a[i][0])*1000/ms).toFixed(0)+'/s',frames:((x[1]-a[i][1])*1000/ms).toFixed(0)+'/s',vis:x[2],focus:x[3],log:x[4]}))};
export const cpu=()=>{let t=0;const kids=[p.pid];for(let i=0;i<kids.length;i++){try{for(const tid of fs.readdirSync(`/proc/${kids[i]}/task`)){for(const c of fs.readFileSync(`/proc/${kids[i]}/task/${tid}/children`,'utf8').split(' ').filter(Boolean))kids.push(+c)}const s=fs.readFileSync(`/proc/${kids[i]}/stat`,'utf8').split(') ')[1].split(' ');t+=+s[11]+ +s[12]}catch{}}return t*10};
export const end=async()=>{ws.close();p.kill('SIGKILL');srv.close();await sleep(300);fs.rmSync(dir,{recursive:true,force:true,maxRetries:3});process.exit(0)};
export {base,p,dir,url};
