'use strict';

// The panel below the boxes shows one thing of one box: a terminal, the files or the jobs.
const panel = { of: '', end: () => {} };

function tell(text) { $('told').textContent = text; }

function openPanel(id, title, ...content) {
  closePanel();
  panel.of = id;
  $('title').textContent = title + ' of ' + id;
  $('content').replaceChildren(...content);
  $('panel').hidden = false;
  cards.get(id)?.tr.classList.add('open');
  $('panel').scrollIntoView({ block: 'nearest' });
}

function closePanel() {
  panel.end();
  panel.end = () => {};
  cards.get(panel.of)?.tr.classList.remove('open');
  panel.of = '';
  tell('');
  $('panel').hidden = true;
  $('content').replaceChildren();
}

$('close').onclick = closePanel;

function openTerminal(id) {
  const screen = element('div');
  screen.id = 'screen';
  openPanel(id, 'Terminal', screen);
  const term = new Terminal({ screenReaderMode: true, cursorBlink: true });
  term.open(screen);
  term.fit();
  const where = new URL(pathOf(id) + '/terminal', location);
  where.protocol = where.protocol.replace('http', 'ws');
  where.search = new URLSearchParams({ rows: term.rows, cols: term.cols });
  const socket = new WebSocket(where, ['terminal', 'token.' + token]);
  socket.binaryType = 'arraybuffer';
  // A message may end within a character. The decoder keeps the first part of it.
  const decoder = new TextDecoder(), encoder = new TextEncoder();
  socket.onmessage = e => term.write(decoder.decode(e.data, { stream: true }));
  socket.onclose = e => term.write('\r\n[' + (e.reason || 'the connection is lost') + ']\r\n');
  const send = message => { if (socket.readyState === WebSocket.OPEN) socket.send(message); };
  term.on('data', text => send(encoder.encode(text)));
  term.on('resize', size => send(JSON.stringify({ rows: size.rows, cols: size.cols })));
  const fit = () => term.fit();
  window.addEventListener('resize', fit);
  panel.end = () => {
    socket.onclose = null;
    socket.close();
    window.removeEventListener('resize', fit);
    term.destroy();
  };
  term.focus();
}

const join = (dir, name) => dir.replace(/\/$/, '') + '/' + name;

function size(n) {
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (n < 1000) return (unit === 'B' ? n : n.toFixed(1)) + ' ' + unit;
    n /= 1024;
  }
  return n.toFixed(1) + ' GiB';
}

// download saves what a request answers as a file.
async function download(path, query, name) {
  const a = element('a');
  a.href = URL.createObjectURL(await (await request('GET', path, query)).blob());
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

async function openFiles(id) {
  const at = pathOf(id) + '/files';
  const path = element('div', 'path'), list = element('tbody'), more = element('p', 'dim');
  const input = element('input'), label = element('label', '', 'Upload ', input);
  input.type = 'file';
  input.multiple = true;
  let dir = (await ask('GET', pathOf(id))).working_dir || '/';
  const link = (text, action) => {
    const b = button(text, action, tell);
    b.className = 'link';
    return b;
  };
  const open = async to => {
    const page = await ask('GET', at + '/list', { path: to, limit: 500 });
    dir = to;
    const parts = to.split('/').filter(Boolean);
    path.replaceChildren(button('/', () => open('/'), tell), ...parts.flatMap((part, i) => [
      button(part, () => open('/' + parts.slice(0, i + 1).join('/')), tell),
      i < parts.length - 1 ? '/' : '']));
    list.replaceChildren(...page.items.map(f => {
      const full = join(dir, f.name), tr = element('tr');
      const name = f.kind === 'directory' ? link(f.name + '/', () => open(full))
        : link(f.name, () => download(at, { path: full }, f.name));
      const remove = button('Delete', async () => {
        if (!confirm('Delete ' + full + '?')) return;
        await ask('DELETE', at, { path: full, recursive: f.kind === 'directory' });
        await open(dir);
      }, tell);
      remove.setAttribute('aria-label', 'Delete ' + full);
      tr.append(element('td', 'name', name),
        element('td', 'number', f.kind === 'file' ? size(f.size_bytes) : f.kind),
        element('td', 'number wide', ago(f.modified_at)), element('td', 'wide', f.mode),
        element('td', 'number', remove));
      return tr;
    }));
    more.textContent = page.next_page_id ? 'There are more files: the first 500 are shown.'
      : page.items.length ? '' : 'The directory is empty.';
  };
  input.onchange = async () => {
    tell('');
    for (const file of input.files) {
      try {
        await request('PUT', at, { path: join(dir, file.name) }, file);
      } catch (e) { tell(e.message); }
    }
    input.value = '';
    open(dir).catch(e => tell(e.message));
  };
  openPanel(id, 'Files', element('form', '', label,
    button('Download as tar', () => download(at + '/archive', { path: dir }, 'files.tar'), tell)),
  path, element('div', 'scroll', element('table', '', list)), more);
  $('content').querySelector('form').onsubmit = e => e.preventDefault();
  await open(dir);
}

async function openJobs(id) {
  const at = pathOf(id) + '/jobs';
  const command = element('input'), list = element('tbody'), none = element('p', 'dim');
  const log = element('pre');
  command.placeholder = 'python3 -m http.server 8000';
  command.size = 30;
  command.setAttribute('aria-label', 'Command');
  log.hidden = true;
  let following = new AbortController();
  const follow = async job => {
    following.abort();
    const mine = following = new AbortController();
    log.hidden = false;
    log.textContent = '';
    try {
      const answer = await request('GET', at + '/' + job + '/logs', { follow: true }, undefined,
        mine.signal);
      const events = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = '', part; !(part = await events.read()).done;) {
        const lines = (rest + part.value).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          if (!line.startsWith('data: ')) continue;
          const atEnd = log.scrollTop + log.clientHeight > log.scrollHeight - 20;
          const text = (log.textContent + (JSON.parse(line.slice(6)).text || ''))
            .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '');
          log.textContent = text.slice(-200000);
          if (atEnd) log.scrollTop = log.scrollHeight;
        }
      }
      if (!mine.signal.aborted) await refreshJobs();
    } catch (e) { if (!mine.signal.aborted) tell(e.message); }
  };
  let known;
  const refreshJobs = async () => {
    const { items } = await ask('GET', at);
    if (known === JSON.stringify(items)) return; // what is shown stays under the mouse
    known = JSON.stringify(items);
    none.textContent = items.length ? '' : 'There are no jobs. A job runs beside the terminals, ' +
      'and its log stays.';
    list.replaceChildren(...items.map(job => {
      const tr = element('tr'), act = element('td', 'number');
      act.append(button('Log', () => { follow(job.id); }, tell), ' ');
      act.append(job.ended
        ? button('Forget', async () => {
          await ask('DELETE', at + '/' + job.id);
          following.abort();
          log.hidden = true;
          await refreshJobs();
        }, tell)
        : button('Kill', async () => {
          await ask('POST', at + '/' + job.id + '/kill');
          await refreshJobs();
        }, tell));
      tr.append(element('td', 'wide', job.id), element('td', 'name', job.command),
        element('td', '', job.ended ? 'ended' : 'runs'), act);
      return tr;
    }));
  };
  const form = element('form', '', element('label', '', 'Command ', command),
    element('button', '', 'Start a job'));
  form.onsubmit = async e => {
    e.preventDefault();
    tell('');
    try {
      const job = await ask('POST', at, undefined, { command: command.value });
      command.value = '';
      await refreshJobs();
      follow(job.id);
    } catch (e) { tell(e.message); }
  };
  openPanel(id, 'Jobs', form, element('div', 'scroll', element('table', '', list)), none, log);
  const look = setInterval(() => refreshJobs().catch(() => {}), 2000);
  panel.end = () => {
    clearInterval(look);
    following.abort();
  };
  await refreshJobs();
}

watch();
repeat(refresh);
repeat(refreshUse);
