'use strict';

const $ = id => document.getElementById(id);

// The address that the program prints has the token after "#". The page keeps it for its origin.
// The port is part of the origin, so other servers on this machine do not get it.
const given = new URLSearchParams(location.hash.slice(1)).get('token');
if (given) {
  localStorage.setItem('token', given);
  history.replaceState(null, '', location.pathname);
}
const token = localStorage.getItem('token') || '';

// request makes a request with the token. If the program refuses it, request throws its reason.
async function request(method, path, query, body, signal) {
  const answer = await fetch(path + (query ? '?' + new URLSearchParams(query) : ''), {
    method, body, signal, headers: { Authorization: 'Bearer ' + token },
  });
  if (answer.ok) return answer;
  const text = await answer.text();
  let detail;
  try { detail = JSON.parse(text).detail; } catch { /* requireToken answers with plain text */ }
  throw new Error(detail || text || answer.statusText);
}

// ask makes a request of the service's API. body is sent as JSON.
async function ask(method, path, query, body) {
  return (await request(method, path, query, body && JSON.stringify(body))).json();
}

const pathOf = id => '/sandboxes/' + encodeURIComponent(id);

function showMessage(text) { $('message').textContent = text; }

// element returns an element with a class, a text or children.
function element(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

// button returns a button for an action. It is disabled until the action is done.
function button(label, action, tell = showMessage) {
  const b = element('button', '', label);
  b.onclick = async () => {
    b.disabled = true;
    tell('');
    try { await action(); } catch (e) { tell(e.message); }
    b.disabled = false;
    refresh();
  };
  return b;
}

// span writes a length of time, in milliseconds, with one unit.
function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 100) return s + ' s';
  if (s < 100 * 60) return Math.round(s / 60) + ' min';
  if (s < 48 * 3600) return Math.round(s / 3600) + ' h';
  return Math.round(s / 86400) + ' days';
}

const ago = time => span(Date.now() - Date.parse(time)) + ' ago';
const until = time => 'in ' + span(Date.parse(time) - Date.now());

// Cards are kept, and only what is in them changes. So a button does not vanish under the mouse.
const cards = new Map(); // by id

const samples = 60; // of the use of a box, one a second

function card(id) {
  const c = { cpus: [], memories: [] };
  for (const name of ['id', 'status', 'about', 'when', 'ports', 'detail']) {
    c[name] = element('div', name);
  }
  c.about.className += ' dim';
  c.when.className += ' dim';
  c.detail.className += ' dim';
  c.id.textContent = id;
  c.use = element('dl', 'use');
  for (const [name, title] of [['cpu', 'CPU'], ['memory', 'Memory'], ['pids', 'Processes']]) {
    c[name] = element('dd', name, '…'); // the engine needs some seconds to tell
    c[name + 'Line'] = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    c[name + 'Line'].setAttribute('aria-hidden', 'true');
    c.use.append(element('dt', '', title), c[name], c[name + 'Line']);
  }
  const named = (label, action) => {
    const b = button(label, action);
    b.setAttribute('aria-label', label + ' ' + id);
    return b;
  };
  c.terminal = named('Terminal', () => openTerminal(id));
  c.files = named('Files', () => openFiles(id));
  c.jobs = named('Jobs', () => openJobs(id));
  c.pause = named('Pause', () => ask('POST', pathOf(id) + '/pause'));
  c.resume = named('Resume', () => ask('POST', pathOf(id) + '/resume'));
  c.remove = named('Delete', async () => {
    if (await isSure(id)) await ask('DELETE', pathOf(id));
  });
  c.remove.className = 'danger';
  c.tr = element('article', '', element('div', 'head', c.id, c.status), c.about, c.detail, c.use,
    c.ports, c.when, element('div', 'do', c.terminal, c.files, c.jobs, c.pause, c.resume,
      c.remove));
  c.tr.id = 'box-' + id;
  return c;
}

// isSure asks whether a box is to be deleted.
function isSure(id) {
  $('victim').textContent = id;
  $('sure').returnValue = 'no';
  $('sure').showModal();
  return new Promise(done => {
    $('sure').onclose = () => done($('sure').returnValue === 'yes');
  });
}

function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
  e.hidden = !text;
}

function show(box) {
  const c = cards.get(box.id) || card(box.id);
  cards.set(box.id, c);
  const running = box.status === 'RUNNING';
  set(c.about, box.sandbox_spec_id + ', started ' + ago(box.created_at) +
    (box.created_by_user_id ? ' by ' + box.created_by_user_id : ''));
  set(c.status, box.status);
  c.status.className = 'status ' + box.status;
  set(c.detail, box.status_detail || '');
  set(c.when, [box.pauses_at && 'pauses ' + until(box.pauses_at) + ' without use',
    box.ends_at && (running && box.pause_at_end ? 'is paused ' : 'is removed ') +
    until(box.ends_at)].filter(Boolean).join(', '));
  c.use.hidden = !running;
  for (const b of [c.terminal, c.files, c.jobs, c.pause]) b.hidden = !running;
  c.resume.hidden = box.status !== 'PAUSED';
  const urls = box.exposed_urls || [];
  c.ports.hidden = urls.length === 0;
  const links = urls.map(u => u.name + ' ' + u.url).join(' ') + box.session_api_key;
  if (c.ports.dataset.links !== links) {
    c.ports.dataset.links = links;
    c.ports.replaceChildren(...urls.map(u => {
      const a = element('a', '', u.name + ' :' + u.port);
      a.href = u.url + '?' + new URLSearchParams({ session_api_key: box.session_api_key });
      a.target = '_blank';
      a.rel = 'noopener noreferrer';
      return a;
    }));
  }
  return c.tr;
}

const MiB = n => (n / 2 ** 20).toFixed(1);

// draw draws values as a line, whose top is at least least.
function draw(svg, values, least) {
  const top = Math.max(least, ...values);
  const points = values.map((v, i) => (samples - values.length + i) + ',' + (20 - 18 * v / top));
  svg.setAttribute('viewBox', '0 0 ' + (samples - 1) + ' 21');
  svg.setAttribute('preserveAspectRatio', 'none');
  const line = svg.firstChild ||
    svg.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'polyline'));
  line.setAttribute('points', points.join(' '));
  line.setAttribute('vector-effect', 'non-scaling-stroke');
}

function keep(values, v) {
  values.push(v);
  if (values.length > samples) values.shift();
}

function showUse(box, c) {
  const now = performance.now(), last = c.last;
  c.last = { at: now, cpu: box.use.cpu_seconds };
  if (last) {
    const percent = (box.use.cpu_seconds - last.cpu) / (now - last.at) * 1e5; // now is in ms
    set(c.cpu, Math.max(0, percent).toFixed(0) + ' %');
    keep(c.cpus, Math.max(0, percent));
    draw(c.cpuLine, c.cpus, 10);
  }
  keep(c.memories, box.use.memory_bytes);
  draw(c.memoryLine, c.memories, box.use.memory_limit_bytes / 8);
  set(c.memory, MiB(box.use.memory_bytes) + ' of ' + MiB(box.use.memory_limit_bytes) + ' MiB');
  set(c.pids, String(box.use.pids) + (box.use.pids_limit ? ' of ' + box.use.pids_limit : ''));
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

// refresh shows the boxes. If two searches are under way, the one that began last counts.
let begun = 0, shown = 0;

async function refresh() {
  const turn = ++begun;
  let articles;
  try {
    const boxes = await search({});
    if (turn < shown) return;
    shown = turn;
    articles = boxes.map(show);
    $('none').hidden = boxes.length > 0;
  } catch (e) { return showMessage(e.message); }
  for (const [id, c] of cards) {
    if (articles.includes(c.tr)) continue;
    c.tr.remove();
    cards.delete(id);
    if (panel.of === id) closePanel();
  }
  articles.forEach((a, i) => {
    const at = $('boxes').children[i];
    if (at !== a) $('boxes').insertBefore(a, at);
  });
}

// repeat runs an action every second while the page is visible. Events say when a box is made, is
// removed or changes. They do not say what boxes use, or what their health checks find.
async function repeat(action) {
  for (;;) {
    if (!document.hidden) await action().catch(() => {}); // refresh shows the error
    await new Promise(done => setTimeout(done, 1000));
  }
}

async function refreshUse() {
  for (const box of await search({ use: 'true', status: 'RUNNING' })) {
    const c = cards.get(box.id);
    if (c && box.use) showUse(box, c);
  }
}

$('start').onsubmit = async e => {
  e.preventDefault();
  const query = { sandbox_spec_id: $('spec').value };
  if ($('id').value) query.sandbox_id = $('id').value;
  const exists = cards.has($('id').value);
  showMessage('');
  $('begin').disabled = true;
  $('begin').textContent = 'Starting…';
  try {
    const box = await ask('POST', '/sandboxes', query, { ends_in_seconds: +$('ends').value });
    $('id').value = '';
    if (exists) showMessage('The box ' + box.id + ' was there: it runs.');
  } catch (e) { showMessage(e.message); }
  $('begin').disabled = false;
  $('begin').textContent = 'Start';
  refresh();
};

// watch refreshes the page at each event of the service.
async function watch() {
  for (;;) {
    try {
      const events = (await request('GET', '/events')).body.getReader();
      while (!(await events.read()).done) refresh();
    } catch { /* refresh shows the error */ }
    await new Promise(done => setTimeout(done, 1000));
  }
}

// describe says what a spec's boxes are made of, and what becomes of them.
function describe(spec) {
  const l = spec.limits, life = spec.lifecycle, s = n => span(n * 1000);
  return [spec.image, l.memory_bytes ? size(l.memory_bytes) : 'memory without limit',
    l.cpus && l.cpus + ' processors', spec.network === 'none' && 'no network',
    life.idle_seconds && 'paused after ' + s(life.idle_seconds) + ' without use',
    life.session_seconds && 'or after ' + s(life.session_seconds),
    life.keep_seconds && 'removed after ' + s(life.keep_seconds) + ' at rest',
  ].filter(Boolean).join(', ');
}

ask('GET', '/sandbox-specs/search').then(page => {
  for (const spec of page.items) $('spec').add(new Option(spec.id));
  $('spec').onchange = () => {
    $('about').textContent = describe(page.items[$('spec').selectedIndex]);
  };
  if (page.items.length) $('spec').onchange();
}).catch(e => showMessage(e.message));
