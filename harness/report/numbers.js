'use strict';

// The numbers of results, as harness.Summary has them.
const numbers = (() => {
  const counts = r => r.status !== 'lost' && r.status !== 'broken' &&
    r.status !== 'running' && r.status !== 'waiting';

  // passAt returns how probable it is that one of k of n results, of which c have passed, passes.
  function passAt(n, c, k) {
    if (n - c < k) return 1;
    let fails = 1;
    for (let i = n - c + 1; i <= n; i++) fails *= 1 - k / i;
    return 1 - fails;
  }

  // rateOf returns the mean of values with its standard error.
  function rateOf(values) {
    let value = 0, squares = 0, tasks = 0;
    for (const v of values) {
      const off = v - value;
      value += off / ++tasks;
      squares += off * (v - value);
    }
    return { value, error: tasks > 1 ? Math.sqrt(squares / (tasks - 1) / tasks) : 0, tasks };
  }

  function byTask(rows) {
    const tasks = new Map();
    for (const r of rows) tasks.has(r.task) ? tasks.get(r.task).push(r) : tasks.set(r.task, [r]);
    return tasks.values();
  }

  // rate returns the mean of pass@k, with its 95 % interval. Of one sample for each task, that is
  // Wilson's, which holds for few tasks too.
  function rate(rows, k) {
    const values = [];
    for (const of of byTask(rows.filter(counts))) {
      if (of.length >= k) {
        values.push(passAt(of.length, of.filter(r => r.status === 'pass').length, k));
      }
    }
    const n = values.length, z = 1.96, r = rateOf(values);
    if (values.every(v => v === 0 || v === 1)) {
      const middle = (r.value + z * z / (2 * n)) / (1 + z * z / n);
      const half = z * Math.sqrt(r.value * (1 - r.value) / n + z * z / (4 * n * n)) /
        (1 + z * z / n);
      return { ...r, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
    }
    return { ...r, low: Math.max(0, r.value - z * r.error), high: Math.min(1, r.value + z * r.error) };
  }

  // score returns the mean of a score. A task counts with the mean of its samples that have it.
  function score(rows, name) {
    const values = [];
    for (const of of byTask(rows.filter(r => counts(r) && (r.scores || {})[name] !== undefined))) {
      values.push(of.reduce((sum, r) => sum + r.scores[name], 0) / of.length);
    }
    const r = rateOf(values);
    return { ...r, low: r.value - 1.96 * r.error, high: r.value + 1.96 * r.error };
  }

  // text returns a number for people.
  function text(n) {
    if (n === undefined || n === null) return '';
    const size = Math.abs(n);
    if (size >= 1e15) return n.toPrecision(3);
    if (size >= 1000) return Math.round(n).toLocaleString('en');
    return String(+n.toFixed(size < 10 ? 3 : 1));
  }

  const percent = x => Math.round(100 * x) + ' %';
  const signed = (n, f) => (n < 0 ? '−' : '+') + f(Math.abs(n));

  function duration(s) {
    if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + ' s';
    return s < 7200 ? (s / 60).toFixed(0) + ' min' : (s / 3600).toFixed(1) + ' h';
  }

  return { counts, rate, score, rateOf, passAt, text, percent, signed, duration };
})();
