'use strict';

// The page shows what report/data.js holds, compared with report/compare.js. Until the run has
// ended, it loads those files again and again, by script elements, because a page from file://
// cannot fetch. Whatever a box has printed becomes text: nothing here makes HTML of it.
(() => {
  const nonce = document.currentScript.nonce;
  const $ = id => document.getElementById(id);
  const { text, percent, signed, duration } = numbers;

  function element(name, properties, ...children) {
    const e = Object.assign(document.createElement(name), properties);
    e.append(...children);
    return e;
  }

  let data = null;
  let compared = null; // with an earlier run
  const defaults = { q: '', status: '', tag: '', change: '', group: '', sort: 'order', down: '',
    fold: '' };
  const state = { ...defaults };
  const turned = new Set(); // the groups that are not as state.fold says

  // Columns.

  const time = (key, label) => ({ key, label, kind: 'number' + (key === 'agent' ? '' : ' minor'),
    value: r => r.times && r.times[key],
    text: r => r.times && r.times[key] !== undefined ? r.times[key].toFixed(1) : '' });
  const before = r => (compared && compared.tasks[r.task]) || {};

  // columns returns the columns that the results have: each with what it sorts by.
  function columns() {
    const names = field => [...new Set(data.tasks.flatMap(r => Object.keys(r[field] || {})))].sort();
    const all = field => names(field).map(name => ({ key: field + ':' + name, label: name,
      kind: 'number', value: r => (r[field] || {})[name],
      text: r => text((r[field] || {})[name]) }));
    return [
      { key: 'task', label: 'Task', kind: 'name', value: r => r.task },
      { key: 'status', label: 'Status', kind: 'state', value: r => data.statuses.indexOf(r.status) },
      ...(compared ? [{ key: 'before', label: 'Before', kind: 'before',
        value: r => compared.changes.indexOf(before(r).change) }] : []),
      ...all('scores'), ...all('counts'),
      time('box', 'Box s'), time('setup', 'Setup s'), time('agent', 'Agent s'),
      time('check', 'Check s'),
      { key: 'reason', label: 'Reason', kind: 'reason', value: r => r.reason || '' },
    ];
  }

  // Numbers.

  const title = r => r.task + (r.sample > 1 ? ', sample ' + r.sample : '');
  const ended = r => r.status !== 'running' && r.status !== 'waiting';
  const plural = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
  const sum = (rows, f) => rows.reduce((n, r) => n + (f(r) || 0), 0);

  // ks are the k of pass@k that are shown.
  const ks = () => data.samples > 1 ? [1, data.samples] : [1];
  const between = r => `${percent(r.low)} to ${percent(r.high)}`;

  // rateText tells the share of tasks that have passed.
  function rateText(rows) {
    const parts = ks().map(k => [k, numbers.rate(rows, k)]).filter(([, r]) => r.tasks > 0);
    if (parts.length === 0) return '';
    if (data.samples === 1) {
      const [[, r]] = parts;
      return `${Math.round(r.value * r.tasks)} of ${r.tasks} passed: ${percent(r.value)}`;
    }
    return parts.map(([k, r]) => `pass@${k} ${percent(r.value)}`).join(', ') +
      ` of ${plural(parts[0][1].tasks, 'task')}`;
  }

  function ago(then) {
    const s = Math.max(0, Math.round((Date.now() - new Date(then)) / 1000));
    if (s < 120) return s + ' s ago';
    if (s < 7200) return Math.round(s / 60) + ' min ago';
    return 'at ' + new Date(then).toLocaleString();
  }

  // interval draws a value with its interval, on a scale from least to most.
  function interval(value, low, high, least, most) {
    const at = x => 100 * (Math.min(Math.max(x, least), most) - least) / (most - least) + '%';
    const track = element('div', { className: 'interval', ariaHidden: 'true' });
    const add = (className, left, right) => {
      const i = element('i', { className });
      i.style.left = at(left);
      if (right !== undefined) i.style.width = `calc(${at(right)} - ${at(left)})`;
      track.append(i);
    };
    if (least < 0) add('zero', 0);
    if (high > low) add('range', low, high);
    add('value', value);
    return track;
  }

  // The state of the page is in its address, so that a link leads to what one sees.

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const key in defaults) state[key] = given.get(key) ?? defaults[key];
    return given.get('task');
  }

  function writeAddress() {
    const query = new URLSearchParams();
    for (const key in defaults) if (state[key] !== defaults[key]) query.set(key, state[key]);
    history.replaceState(null, '', '#' + query);
  }

  // Rows.

  function matches(r) {
    if (state.status && !state.status.split(',').includes(r.status)) return false;
    if (state.tag && !(r.tags || []).includes(state.tag)) return false;
    if (state.change && before(r).change !== state.change) return false;
    const all = [title(r), r.status, r.reason || '', ...(r.tags || [])].join('\n').toLowerCase();
    return state.q.toLowerCase().split(/\s+/).every(word => all.includes(word));
  }

  function compare(column) {
    return (a, b) => {
      const x = column.value(a), y = column.value(b);
      const no = v => v === undefined || v === null || v === '' || Number.isNaN(v);
      if (no(x) || no(y)) return no(x) - no(y); // what has none comes last, in both directions
      const order = typeof x === 'number' ? x - y : x < y ? -1 : x > y ? 1 : 0;
      return state.down ? -order : order;
    };
  }

  const kept = new Map(); // by the directory of the result: its row, and the text that it was made of

  // row returns the row of a task. It is the one before if nothing has changed, so that a button
  // does not vanish under the mouse.
  function row(r, all) {
    const made = JSON.stringify([r, before(r), all.map(c => c.key)]);
    const old = kept.get(r.dir);
    if (old && old.made === made) return old.tr;
    const tr = newRow(r, all);
    kept.set(r.dir, { made, tr });
    return tr;
  }

  function newRow(r, all) {
    const tr = element('tr', { id: 'task-' + r.dir, className: 'task', role: 'row' });
    for (const c of all) {
      const td = element('td', { className: c.kind, role: 'cell' });
      if (c.key === 'task') {
        td.append(r.page ? element('a', { href: r.page, textContent: title(r) }) : title(r));
        if (r.tags && r.tags.length) {
          td.append(element('div', {}, ...r.tags.map(t => element('button', { type: 'button',
            className: 'tag', textContent: t, onclick: () => change({ tag: t }) }))));
        }
      } else if (c.key === 'status') {
        td.className = 'status ' + (data.statuses.includes(r.status) ? r.status : '');
        td.textContent = r.status + (r.attempts > 1 ? ` (${r.attempts} attempts)` : '');
      } else if (c.key === 'before') {
        const was = before(r);
        if (was.status) {
          td.append(was.page ? element('a', { href: was.page, textContent: was.status })
            : was.status, ' ');
        }
        if (was.change) td.append(changeMark(was.change));
      } else if (c.key === 'reason') {
        td.textContent = r.reason || '';
      } else {
        td.dataset.label = c.label;
        td.textContent = c.text(r);
      }
      tr.append(td);
    }
    return tr;
  }

  const changeMark = name => element('span', { className: 'change ' + name.replace(' ', '-'),
    textContent: name });

  // groups returns the rows by what they are grouped by. A task is in the group of each of its tags.
  function groups(rows) {
    if (!state.group) return [['', rows]];
    const of = {
      tag: r => r.tags && r.tags.length ? r.tags : ['without a tag'],
      status: r => [r.status],
      compared: r => [before(r).change || 'not yet'],
      directory: r => [r.task.includes('/') ? r.task.slice(0, r.task.lastIndexOf('/')) : '.'],
    }[state.group] || (() => ['all']);
    const all = new Map();
    for (const r of rows) {
      for (const g of of(r)) all.has(g) ? all.get(g).push(r) : all.set(g, [r]);
    }
    const names = [...all.keys()];
    const order = { status: data.statuses, compared: compared && compared.changes }[state.group];
    order ? names.sort((a, b) => order.indexOf(a) - order.indexOf(b)) : names.sort();
    return names.map(name => [name, all.get(name)]);
  }

  const open = name => !state.fold === !turned.has(name);

  function groupRow(name, rows, width) {
    const b = element('button', { type: 'button', textContent: (open(name) ? '▾ ' : '▸ ') + name,
      ariaExpanded: String(open(name)) });
    b.onclick = () => {
      turned.has(name) ? turned.delete(name) : turned.add(name);
      show();
      for (const g of document.querySelectorAll('tr.group button')) {
        if (g.dataset.name === name) g.focus();
      }
    };
    b.dataset.name = name;
    const agent = sum(rows, r => r.times && r.times.agent);
    const r = numbers.rate(rows, 1);
    const told = state.group === 'status' || r.tasks === 0 ? plural(rows.length, 'result')
      : rateText(rows);
    const th = element('th', { scope: 'rowgroup', colSpan: width }, b,
      element('span', { className: 'soft', textContent: told + (agent ? ', agent ' +
        duration(agent) : '') }));
    if (state.group !== 'status' && r.tasks > 0) {
      th.append(interval(r.value, r.low, r.high, 0, 1),
        element('span', { className: 'soft', textContent: '95 %: ' + between(r) }));
    }
    return element('tr', { className: 'group', role: 'row' }, th);
  }

  // A long list is filled piece by piece, so that its beginning is there at once.
  const piece = 60;
  let rest = []; // what is to be appended: pairs of a body and a function that returns its row
  let filling = 0;

  function fill(n) {
    let body = null, some = [];
    const flush = () => { if (body) body.append(...some); some = []; };
    for (const [of, make] of rest.splice(0, n)) {
      if (of !== body) { flush(); body = of; }
      some.push(make());
    }
    flush();
    clearTimeout(filling);
    if (rest.length) filling = setTimeout(() => fill(2 * piece), 0);
  }

  function showTable(all) {
    const rows = data.tasks.filter(matches);
    const by = all.find(c => c.key === state.sort);
    if (by) rows.sort(compare(by));
    else if (state.down) rows.reverse();
    const focused = document.activeElement, used = new Set();
    const many = $('list').querySelectorAll('tr.task').length;
    rest = [];
    const bodies = groups(rows).map(([name, of]) => {
      const body = element('tbody', { role: 'rowgroup' });
      if (state.group) body.append(groupRow(name, of, all.length));
      if (!state.group || open(name)) {
        // A row can be in one place only: a task of several groups has copies in the later ones.
        for (const r of of) {
          const copy = used.has(r.dir);
          used.add(r.dir);
          rest.push([body, () => {
            if (!copy) return row(r, all);
            const tr = newRow(r, all);
            tr.removeAttribute('id');
            return tr;
          }]);
        }
      }
      return body;
    });
    for (const body of [...$('list').tBodies]) body.remove();
    $('list').append(...bodies);
    fill(Math.max(piece, many)); // as many as before, so that the page does not jump
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus();
    const what = data.samples > 1 ? 'result' : 'task';
    $('shown').textContent = rows.length === data.tasks.length ? `All ${plural(rows.length, what)}`
      : rows.length === 0 ? `No ${what} is so: "Show all" shows all again`
        : `${rows.length} of ${plural(data.tasks.length, what)}`;
    $('clear').hidden = rows.length === data.tasks.length;
  }

  // layOut lays the list out so that its columns fit: without the times that matter less, as cards
  // on a small screen, or wider than a large one.
  function layOut() {
    const kinds = [...$('columns').children].map(c => c.className);
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const width = document.body.clientWidth / rem;
    const need = kinds.reduce((sum, k) =>
      sum + ({ name: 13, state: 6, before: 8.5, reason: 13 }[k] || 5.4), 0);
    const less = need - 5.4 * kinds.filter(k => k.endsWith('minor')).length;
    const layout = width >= need ? '' : width >= less ? 'narrow' : width < 60 ? 'cards'
      : 'narrow wide';
    $('scroll').className = layout;
    $('list').style.minWidth = layout === 'narrow wide' ? less + 'rem' : '';
  }

  function showHead(all) {
    const made = JSON.stringify(all.map(c => c.key));
    if ($('columns').dataset.made !== made) {
      $('columns').dataset.made = made;
      $('columns').replaceChildren(...all.map(c => element('col', { className: c.kind })));
      layOut();
    }
    $('head').replaceChildren(...all.map(c => {
      const b = element('button', { type: 'button', textContent: c.label, title: c.label });
      b.onclick = () => change({ sort: c.key, down: state.sort === c.key && !state.down ? '1' : '' });
      const th = element('th', { scope: 'col', className: c.kind, role: 'columnheader' }, b);
      if (state.sort === c.key) {
        th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      }
      return th;
    }));
  }

  function meanRow(name, r, draw, format) {
    return element('tr', {}, element('th', { scope: 'row', textContent: name }),
      element('td', { className: 'number', textContent: format(r.value) }),
      element('td', { className: 'soft', textContent: r.tasks > 1
        ? `95 %: ${format(r.low)} to ${format(r.high)}` : '' }),
      element('td', {}, draw ? interval(r.value, r.low, r.high, 0, 1) : ''),
      element('td', { className: 'soft number', textContent: plural(r.tasks, 'task') }));
  }

  function showSummary(all) {
    const rows = data.tasks, count = {};
    for (const r of rows) count[r.status] = (count[r.status] || 0) + 1;
    const there = data.statuses.filter(s => count[s]);
    const out = (count.lost || 0) + (count.broken || 0);
    $('rate').textContent = (rateText(rows) || 'No task has a result yet.') +
      (out ? `. ${plural(out, 'result')} lost or broken, not counted.` : '');
    $('bar').replaceChildren(...there.map(s => {
      const i = element('i', { className: s });
      i.style.flex = String(count[s]);
      return i;
    }));
    const means = ks().map(k => [`pass@${k}`, numbers.rate(rows, k), true, percent]);
    for (const c of all.filter(c => c.key.startsWith('scores:'))) {
      const r = numbers.score(rows, c.label);
      means.push([c.label, r, r.low >= -0.001 && r.high <= 1.001, text]);
    }
    $('means').tBodies[0].replaceChildren(...means.filter(([, r]) => r.tasks > 0).map(m =>
      meanRow(...m)));
    const totals = all.filter(c => c.key.startsWith('counts:')).map(c =>
      `${text(sum(rows, c.value))} ${c.label}`);
    totals.unshift('agents ' + duration(sum(rows, r => r.times && r.times.agent)));
    $('totals').textContent = 'In all: ' + totals.join(', ') + '.';
    $('statuses').replaceChildren($('statuses').firstElementChild, ...there.map(s => {
      const chosen = state.status.split(',');
      const box = element('input', { type: 'checkbox', value: s,
        checked: !state.status || chosen.includes(s) });
      box.onchange = () => {
        const on = [...$('statuses').querySelectorAll('input')].filter(b => b.checked);
        change({ status: on.length === there.length ? '' : on.map(b => b.value).join() || 'none' });
        $('statuses').querySelector(`input[value="${s}"]`).focus();
      };
      return element('label', {}, box, element('span', { className: 'status ' + s,
        textContent: s }), String(count[s]));
    }));
  }

  // showCompared shows how the run differs from an earlier one.
  function showCompared() {
    $('compared').hidden = !compared;
    if (!compared) return;
    $('against').replaceChildren('Compared with ', compared.page ? element('a',
      { href: compared.page, textContent: compared.agent }) : compared.agent);
    $('changes').replaceChildren(...compared.changes.filter(c => compared.counts[c]).flatMap(c => {
      const mark = changeMark(c);
      const told = [String(compared.counts[c]) + ' ', mark];
      if (c === 'only before') return [...told, ' '];
      return [element('button', { type: 'button', ariaPressed: String(state.change === c),
        onclick: () => change({ change: state.change === c ? '' : c }) }, ...told), ' '];
    }));
    const shown = compared.means.filter(m => m.of !== 'time' || /^(agent|in all)$/.test(m.name));
    $('differences').tBodies[0].replaceChildren(...shown.map(m => {
      const share = m.of === 'pass';
      const f = share ? percent : m.of === 'time' ? n => text(+n.toFixed(2)) + ' s' : text;
      const r = m.change, half = 1.96 * r.error, known = r.tasks > 1;
      const low = r.value - half, high = r.value + half;
      const most = share ? 1 : Math.max(Math.abs(low), Math.abs(high),
        Math.abs(m.before.value), 1e-9);
      return element('tr', {}, element('th', { scope: 'row', textContent: m.name }),
        element('td', { className: 'number', textContent: f(m.before.value) }),
        element('td', { className: 'number', textContent: f(m.after.value) }),
        element('td', {}, signed(r.value, f), element('span', { className: 'soft',
          textContent: known ? ` (${signed(low, f)} to ${signed(high, f)})` : '' })),
        element('td', {}, interval(r.value, low, high, -most, most)),
        element('td', { className: 'soft number', textContent: plural(r.tasks, 'task') }));
    }));
    const decided = (compared.counts.better || 0) + (compared.counts.worse || 0);
    $('chance').textContent = decided === 0 ? '' : `Chance alone would split ` +
      `${plural(decided, 'task')} into better and worse at least as unevenly in ` +
      `${+(100 * compared.chance).toPrecision(2)} % of cases.`;
    const gone = compared.gone || [];
    $('gone').hidden = gone.length === 0;
    $('gone').querySelector('summary').textContent =
      `${plural(gone.length, 'task')} only in the run before`;
    $('gone').querySelector('ul').replaceChildren(...gone.map(t => element('li', {}, t.page
      ? element('a', { href: t.page, textContent: t.task }) : t.task, ' ' + t.status)));
  }

  function options(select, pairs, value) {
    const made = JSON.stringify(pairs);
    if (select.dataset.made !== made) {
      select.dataset.made = made;
      select.replaceChildren(...pairs.map(([v, label]) => new Option(label, v)));
    }
    select.value = value;
  }

  function showControls(all) {
    const tags = [...new Set(data.tasks.flatMap(r => r.tags || []))].sort();
    $('tag').parentNode.hidden = tags.length === 0;
    options($('tag'), [['', 'all'], ...tags.map(t => [t, t])], state.tag);
    $('change').parentNode.hidden = !compared;
    if (compared) {
      options($('change'), [['', 'all'], ...compared.changes.filter(c => c !== 'only before' &&
        compared.counts[c]).map(c => [c, c])], state.change);
    }
    const by = [['', 'nothing'], ['status', 'status']];
    if (tags.length) by.push(['tag', 'tag']);
    if (compared) by.push(['compared', 'change']);
    if (data.tasks.some(r => r.task.includes('/'))) by.push(['directory', 'directory']);
    options($('group'), by, state.group);
    options($('sort'), [['order', 'order of the run'], ...all.map(c => [c.key, c.label])],
      state.sort);
    $('turn').textContent = state.down ? 'Down ↓' : 'Up ↑';
    $('turn').setAttribute('aria-label', state.down ? 'Sorted downwards: sort upwards'
      : 'Sorted upwards: sort downwards');
    $('fold').hidden = !state.group;
    $('fold').textContent = state.fold ? 'Unfold all' : 'Fold all';
    if (document.activeElement !== $('search')) $('search').value = state.q;
  }

  function showState() {
    const running = data.tasks.filter(r => r.status === 'running').length;
    $('state').textContent = data.ended
      ? `Ended ${ago(data.written)}. The last run took ${duration(data.seconds)}.`
      : `The run has not ended: ${running} under way, ` +
        `${data.tasks.filter(ended).length} of ${data.tasks.length} have a result. ` +
        `The last change was ${ago(data.written)}.`;
    const passed = data.tasks.filter(r => r.status === 'pass').length;
    document.title = `${data.agent}: ${passed} of ${data.tasks.length} passed` +
      (data.ended ? '' : ', running');
  }

  function show() {
    const all = columns();
    showState();
    showSummary(all);
    showCompared();
    showControls(all);
    showHead(all);
    $('all').hidden = false;
    showTable(all);
  }

  function change(some) {
    Object.assign(state, some);
    writeAddress();
    show();
  }

  // find shows the row of a task that a link names.
  function find(task) {
    for (const tr of document.querySelectorAll('tr.here')) tr.classList.remove('here');
    if (!task) return;
    fill(Infinity);
    const tr = document.getElementById('task-' + task);
    if (!tr) return;
    tr.classList.add('here');
    tr.scrollIntoView({ block: 'center' });
    tr.querySelector('a')?.focus({ preventScroll: true });
  }

  $('controls').onsubmit = e => e.preventDefault();
  $('search').oninput = () => change({ q: $('search').value });
  for (const id of ['tag', 'change', 'sort']) $(id).onchange = () => change({ [id]: $(id).value });
  $('group').onchange = () => { turned.clear(); change({ group: $('group').value, fold: '' }); };
  $('turn').onclick = () => change({ down: state.down ? '' : '1' });
  $('fold').onclick = () => { turned.clear(); change({ fold: state.fold ? '' : '1' }); };
  $('clear').onclick = () => {
    $('search').value = '';
    change({ q: '', status: '', tag: '', change: '' });
    $('search').focus();
  };
  onhashchange = () => { const task = readAddress(); show(); find(task); };
  onresize = layOut;
  onbeforeprint = () => fill(Infinity);
  onkeydown = e => {
    if (e.key === '/' && !/^(INPUT|SELECT)$/.test(e.target.tagName)) {
      e.preventDefault();
      $('search').focus();
    }
  };

  // compareRuns is what report/compare.js calls, before report/data.js.
  let comparedText = 'null';
  window.compareRuns = given => {
    const made = JSON.stringify(given);
    if (made === comparedText) return;
    compared = given;
    comparedText = made;
    if (data) show();
  };

  // report is what report/data.js calls.
  window.report = given => {
    const first = !data, same = data && data.written === given.written;
    data = given;
    if (first) {
      const task = readAddress();
      performance.mark('loaded');
      show();
      find(task);
      requestAnimationFrame(() => setTimeout(() => performance.mark('shown'))); // it is painted
    } else if (same) {
      showState();
    } else {
      show();
    }
    if (!data.ended) setTimeout(load, 2000);
  };

  function load() {
    const get = (name, then) => {
      const script = element('script', { src: `report/${name}?${Date.now()}`, nonce });
      script.onload = () => { script.remove(); then(); };
      script.onerror = () => { script.remove(); setTimeout(load, 2000); };
      document.head.append(script);
    };
    get('compare.js', () => get('data.js', () => {}));
  }
})();
