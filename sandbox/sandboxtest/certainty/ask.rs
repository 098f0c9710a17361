// Programs that ask at the terminal, or work while a thread reads it. The argument says which.
use std::io::{self, Write};
use std::process::exit;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const WORK: Duration = Duration::from_secs(60);

fn line() -> String {
    let mut s = String::new();
    io::stdin().read_line(&mut s).unwrap();
    s
}

fn prompt() {
    print!("name? ");
    io::stdout().flush().unwrap();
}

/// Sends the lines of the terminal.
fn lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || while send.send(line()).is_ok() {});
    receive
}

fn main() {
    match std::env::args().nth(1).unwrap().as_str() {
        "ask" => {
            prompt();
            line();
        }
        "channel" => {
            let lines = lines();
            prompt();
            lines.recv().unwrap();
        }
        "beside-park" => {
            thread::spawn(|| loop {
                thread::park_timeout(Duration::from_secs(30))
            });
            prompt();
            line();
        }
        "sleep" => {
            let _lines = lines();
            println!("working");
            thread::sleep(WORK);
        }
        "park" => {
            let _lines = lines();
            println!("working");
            thread::park_timeout(WORK);
        }
        "channel-timeout" => {
            let lines = lines();
            println!("working");
            let _ = lines.recv_timeout(WORK);
        }
        _ => exit(2),
    }
    exit(0);
}
