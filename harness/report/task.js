'use strict';

// The links to other tasks come from the same files as the list.
(() => {
  const { key, root } = document.body.dataset;
  let compared = null;
  window.compareRuns = given => { compared = given; };
  window.report = data => {
    const rows = data.tasks, at = rows.findIndex(r => r.dir === key);
    if (at < 0) return;
    const links = [];
    const link = (href, text) => links.push(Object.assign(document.createElement('a'),
      { href: root + href, textContent: text }));
    const name = r => r.task + (r.sample > 1 ? ', sample ' + r.sample : '');
    const shown = r => r.page;
    const back = rows.slice(0, at).findLast(shown), on = rows.slice(at + 1).find(shown);
    const bad = rows.slice(at + 1).find(r => r.page && r.status !== 'pass');
    if (back) link(back.page, '← ' + name(back));
    if (on) link(on.page, name(on) + ' →');
    if (bad && bad !== on) link(bad.page, 'next that has not passed: ' + name(bad) + ' →');
    for (const r of rows.filter(r => r.task === rows[at].task && r !== rows[at] && r.page)) {
      link(r.page, `sample ${r.sample}: ${r.status}`);
    }
    const before = compared && compared.tasks[rows[at].task];
    if (before && before.page) {
      link(before.page, `before (${compared.agent}): ${before.status}, now ${before.change}`);
    }
    const around = document.getElementById('around');
    around.replaceChildren(...links);
    around.hidden = links.length === 0;
  };
})();

// The player shows frames: texts that follow each other, each with its time.
(() => {
  const $ = id => document.getElementById(id);

  const failed = $('failed');
  if (failed && document.querySelector('.steps > li.ok') &&
      document.querySelector('.steps > li:not(.ok)')) {
    failed.parentNode.hidden = false;
    failed.onchange = () => {
      for (const li of document.querySelectorAll('.steps > li.ok')) li.hidden = failed.checked;
    };
  }

  if (!$('frames')) return;
  const frames = JSON.parse($('frames').textContent);
  const longest = 2; // seconds that a pause takes if pauses are shortened
  const screen = $('screen'), seek = $('seek'), play = $('play');

  let times = [];      // of the frames, in the player's seconds
  let end = 0;
  let position = 0;    // in the player's seconds
  let shown = 0;       // how many frames the screen shows
  let pieces = [];     // the text of the screen
  let playing = false;

  function measure() {
    let before = frames[0].at, at = 0;
    times = frames.map(f => {
      const pause = Math.max(0, f.at - before);
      before = f.at;
      return at += $('skip').checked ? Math.min(pause, longest) : pause;
    });
    end = at;
    seek.max = String(Math.ceil(end * 2) / 2);
  }

  // draw shows the frames up to the position.
  function draw() {
    if (shown > 0 && times[shown - 1] > position) { shown = 0; pieces = []; }
    const before = shown;
    for (; shown < frames.length && times[shown] <= position; shown++) {
      let drop = frames[shown].drop || 0;
      while (drop > 0 && pieces.length) {
        const last = pieces.pop();
        if (last.length > drop) pieces.push(last.slice(0, last.length - drop));
        drop -= last.length;
      }
      if (frames[shown].text) pieces.push(frames[shown].text);
    }
    if (shown !== before || position === 0) {
      screen.textContent = pieces.join('');
      screen.scrollTop = screen.scrollHeight;
    }
    seek.value = String(position);
    const s = n => Math.floor(n / 60) + ':' + String(Math.floor(n % 60)).padStart(2, '0');
    $('clock').textContent = s(position) + ' of ' + s(end);
    seek.setAttribute('aria-valuetext', $('clock').textContent);
  }

  function move(to) {
    position = Math.min(Math.max(to, 0), end);
    draw();
  }

  function start() {
    if (position >= end) move(0);
    playing = true;
    play.textContent = 'Pause';
    let last = performance.now();
    requestAnimationFrame(function step(now) {
      if (!playing) return;
      move(position + (now - last) / 1000 * $('speed').value);
      last = now;
      if (position >= end) stop();
      else requestAnimationFrame(step);
    });
  }

  function stop() {
    playing = false;
    play.textContent = position >= end ? 'Play again' : 'Play';
  }

  play.onclick = () => playing ? stop() : start();
  seek.oninput = () => { move(+seek.value); if (!playing) stop(); };
  $('skip').onchange = () => {
    const frame = Math.max(shown - 1, 0);
    measure();
    move(times[frame]);
  };
  $('player').onkeydown = e => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const own = /^(BUTTON|SELECT|INPUT|A)$/.test(e.target.tagName);
    if (e.key === ' ' && !own) play.onclick();
    else if (e.key === 'ArrowLeft' && !own) move(position - 5);
    else if (e.key === 'ArrowRight' && !own) move(position + 5);
    else return;
    e.preventDefault();
  };
  for (const b of document.querySelectorAll('button.from')) {
    b.hidden = false;
    b.onclick = () => {
      const i = frames.findIndex(f => f.at >= +b.dataset.at - 0.06);
      move(times[i < 0 ? times.length - 1 : i]);
      $('player').scrollIntoView({ block: 'nearest' });
      play.focus({ preventScroll: true });
      if (!playing) start();
    };
  }
  measure();
  move(end); // the last screen tells more than an empty one
})();
