// Programs that ask at the terminal, or work while they read it. The argument says which.
import {spawn, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import readline from 'node:readline';
import {Worker} from 'node:worker_threads';

const work = 60_000;
const asks = ['-c', 'printf "name? "; read -r x; echo "got $x"'];
const say = text => process.stdout.write(text);
const pump = () => process.stdin.on('data', () => {});
const working = () => say('working\n');
const question = () => readline.createInterface({input: process.stdin, output: process.stdout})
	.question('name? ', () => process.exit());
const serve = ready => {
	const server = net.createServer(() => {});
	server.listen(0, '127.0.0.1', () => ready(server.address().port));
};

const programs = {
	question,
	key() {
		process.stdin.setRawMode(true);
		say('\x1b[?25l? Pick one\n> a\n  b\n');
		process.stdin.on('data', () => process.exit());
	},
	readSync() {
		say('name? ');
		fs.readSync(0, Buffer.alloc(9));
	},
	childAsks() { spawn('sh', asks, {stdio: 'inherit'}); },
	childAsksSync() { spawnSync('sh', asks, {stdio: 'inherit'}); },
	childAsksIntoPipe() {
		const child = spawn('sh', ['-c', 'printf "name? " >&2; read -r x; echo "$x"'],
			{stdio: ['inherit', 'pipe', 'inherit']});
		child.stdout.on('data', () => {});
	},
	spinner() {
		setInterval(() => {}, 100);
		question();
	},
	busyWorker() {
		new Worker('for (;;);', {eval: true});
		question();
	},
	idleChild() {
		spawn('cat', {stdio: ['pipe', 'pipe', 'inherit']});
		question();
	},
	server() {
		process.stdin.setRawMode(true);
		process.stdin.on('data', () => process.exit());
		fs.watch('.', () => {});
		serve(() => say('  ready in 100 ms\n\n  press h + enter to show help'));
	},
	timer() {
		pump();
		working();
		setTimeout(() => process.exit(), work);
	},
	busy() {
		pump();
		working();
		const burn = () => {
			for (const end = Date.now() + 50; Date.now() < end;);
			setImmediate(burn);
		};
		burn();
	},
	connected() {
		pump();
		serve(port => net.connect(port, '127.0.0.1', working));
	},
	child() {
		const child = spawn('sleep', [String(work / 1000)], {stdio: ['pipe', 'inherit', 'inherit']});
		process.stdin.pipe(child.stdin);
		child.on('exit', () => process.exit());
		working();
	},
	files() {
		pump();
		working();
		const read = () => fs.readFile(process.execPath, read);
		read();
	},
};
programs[process.argv[2]]();
