'use strict';

const $ = id => document.getElementById(id);

// The address that the program prints has the token behind "#". It is kept for this origin, which
// includes the port: other servers of this machine don't get it.
const given = new URLSearchParams(location.hash.slice(1)).get('token');
if (given) {
  localStorage.setItem('token', given);
  history.replaceState(null, '', location.pathname);
}
const token = localStorage.getItem('token') || '';

// request makes a request with the token, and throws what the program says is wrong.
async function request(method, path, query) {
  const answer = await fetch(path + (query ? '?' + new URLSearchParams(query) : ''), {
    method, headers: { Authorization: 'Bearer ' + token },
  });
  if (answer.ok) return answer;
  const text = await answer.text();
  let detail;
  try { detail = JSON.parse(text).detail; } catch { /* it is no JSON: what the middleware says */ }
  throw new Error(detail || text || answer.statusText);
}

// ask makes a request of the service's API.
async function ask(method, path, query) { return (await request(method, path, query)).json(); }

function tell(text) { $('message').textContent = text; }

// A button that does something; until it is done it can't be pressed again.
function button(label, action) {
  const b = document.createElement('button');
  b.textContent = label;
  b.onclick = async () => {
    b.disabled = true;
    tell('');
    try { await action(); } catch (e) { tell(e.message); }
    b.disabled = false;
    refresh();
  };
  return b;
}

// Rows stay, so that a button is still there when the mouse comes down on it; what is in their cells changes.
const rows = new Map(); // by id
const before = new Map(); // by id: the processor time last seen, and when

function row(id) {
  const tr = document.createElement('tr');
  tr.id = 'box-' + id;
  const cell = name => { const td = tr.insertCell(); td.className = name; return td; };
  const cells = { id: cell('id'), spec: cell('spec'), status: cell('status'), cpu: cell('cpu'), memory: cell('memory'), pids: cell('pids'), ports: cell('ports') };
  cells.id.textContent = id;
  const path = '/sandboxes/' + encodeURIComponent(id);
  cells.terminal = button('Terminal', () => openTerminal(id));
  cells.pause = button('Pause', () => ask('POST', path + '/pause'));
  cells.resume = button('Resume', () => ask('POST', path + '/resume'));
  cell('do').append(cells.terminal, cells.pause, cells.resume, button('Delete', () => ask('DELETE', path)));
  cells.tr = tr;
  return cells;
}

function set(cell, text) { if (cell.textContent !== text) cell.textContent = text; }

function show(box) {
  const c = rows.get(box.id) || row(box.id);
  rows.set(box.id, c);
  set(c.spec, box.sandbox_spec_id);
  set(c.status, box.status + (box.status_detail ? ': ' + box.status_detail : ''));
  c.status.className = 'status ' + box.status;
  c.terminal.hidden = c.pause.hidden = box.status !== 'RUNNING';
  c.resume.hidden = box.status !== 'PAUSED';
  const links = (box.exposed_urls || []).map(u => u.name + ' ' + u.url).join(' ') + box.session_api_key;
  if (c.ports.dataset.links !== links) {
    c.ports.dataset.links = links;
    c.ports.replaceChildren(...(box.exposed_urls || []).map(u => {
      const a = document.createElement('a');
      a.textContent = u.name;
      a.href = u.url + '?' + new URLSearchParams({ session_api_key: box.session_api_key });
      a.target = '_blank';
      a.rel = 'noopener noreferrer';
      return a;
    }));
  }
  return c.tr;
}

const MiB = n => (n / 2 ** 20).toFixed(1);

function showUse(box, c) {
  const now = performance.now(), last = before.get(box.id);
  before.set(box.id, { at: now, cpu: box.use.cpu_seconds });
  if (last) set(c.cpu, Math.max(0, (box.use.cpu_seconds - last.cpu) / (now - last.at) * 1e5).toFixed(0) + ' %');
  set(c.memory, MiB(box.use.memory_bytes) + ' of ' + MiB(box.use.memory_limit_bytes) + ' MiB');
  set(c.pids, String(box.use.pids));
}

async function search(query) {
  const all = [];
  for (let page = {}; page;) {
    const answer = await ask('GET', '/sandboxes/search', { ...query, ...page });
    all.push(...answer.items);
    page = answer.next_page_id && { page_id: answer.next_page_id };
  }
  return all;
}

// refresh shows the boxes that there are. Of two searches that are under way the one begun last counts.
let begun = 0, shown = 0;

async function refresh() {
  const turn = ++begun;
  let trs;
  try {
    const boxes = await search({});
    if (turn < shown) return;
    shown = turn;
    trs = boxes.map(show);
  } catch (e) { return tell(e.message); }
  for (const [id, c] of rows) {
    if (trs.includes(c.tr)) continue;
    c.tr.remove();
    rows.delete(id);
    before.delete(id);
  }
  trs.forEach((tr, i) => { if ($('boxes').children[i] !== tr) $('boxes').insertBefore(tr, $('boxes').children[i]); });
}

// What comes and goes, the service tells; what it can't tell, such as a health check's word, and what boxes use, is asked for again and again while somebody
// looks.
async function again(action) {
  for (;;) {
    if (!document.hidden) await action().catch(() => {}); // refresh tells what is wrong
    await new Promise(done => setTimeout(done, 1000));
  }
}

async function refreshUse() {
  for (const box of await search({ use: 'true', status: 'RUNNING' })) {
    const c = rows.get(box.id);
    if (c && box.use) showUse(box, c);
  }
}

$('start').onsubmit = async e => {
  e.preventDefault();
  const query = { sandbox_spec_id: $('spec').value };
  if ($('id').value) query.sandbox_id = $('id').value;
  tell('');
  try { await ask('POST', '/sandboxes', query); $('id').value = ''; } catch (e) { tell(e.message); }
  refresh();
};

// watch refreshes when the service tells that a box has come, gone or changed.
async function watch() {
  for (;;) {
    try {
      const events = (await request('GET', '/events')).body.getReader();
      while (!(await events.read()).done) refresh();
    } catch { /* refresh tells what is wrong */ }
    await new Promise(done => setTimeout(done, 1000));
  }
}

let closeTerminal = () => {};

function openTerminal(id) {
  closeTerminal();
  $('terminal').hidden = false;
  $('whose').textContent = id;
  const term = new Terminal({ screenReaderMode: true, cursorBlink: true });
  term.open($('screen'));
  term.fit();
  const where = new URL('/terminal/' + encodeURIComponent(id), location);
  where.protocol = where.protocol.replace('http', 'ws');
  where.search = new URLSearchParams({ rows: term.rows, cols: term.cols });
  const socket = new WebSocket(where, ['terminal', 'token.' + token]);
  socket.binaryType = 'arraybuffer';
  // A character may be cut in two: the decoder keeps the first half.
  const decoder = new TextDecoder(), encoder = new TextEncoder();
  socket.onmessage = e => term.write(decoder.decode(e.data, { stream: true }));
  socket.onclose = e => term.write('\r\n[' + (e.reason || 'the connection is lost') + ']\r\n');
  const send = message => { if (socket.readyState === WebSocket.OPEN) socket.send(message); };
  term.on('data', text => send(encoder.encode(text)));
  term.on('resize', size => send(JSON.stringify({ rows: size.rows, cols: size.cols })));
  const fit = () => term.fit();
  window.addEventListener('resize', fit);
  closeTerminal = () => {
    socket.onclose = null;
    socket.close();
    window.removeEventListener('resize', fit);
    term.destroy();
    $('screen').replaceChildren();
    $('terminal').hidden = true;
    closeTerminal = () => {};
  };
  term.focus();
}

$('close').onclick = () => closeTerminal();

ask('GET', '/sandbox-specs/search').then(page => {
  for (const spec of page.items) $('spec').add(new Option(spec.id));
}).catch(e => tell(e.message));
watch();
again(refresh);
again(refreshUse);
