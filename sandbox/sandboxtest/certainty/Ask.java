import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Programs that ask at the terminal, or work while a thread reads it. The argument says which. */
public class Ask {
	static final int WORK = 60_000;

	static void ask() {
		System.out.print("name? ");
		System.out.flush();
		System.out.println("got " + new Scanner(System.in).nextLine());
	}

	static void pump() {
		Thread t = new Thread(() -> {
			try {
				while (System.in.read() >= 0) {
				}
			} catch (IOException e) {
				throw new RuntimeException(e);
			}
		});
		t.setDaemon(true);
		t.start();
		System.out.println("working");
	}

	static void sleep(int ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			throw new RuntimeException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
		case "ask" -> ask();
		case "console" -> System.console().readLine("name? ");
		case "secret" -> System.console().readPassword("password: ");
		case "silent" -> System.in.read();
		case "thread" -> {
			Thread t = new Thread(Ask::ask);
			t.start();
			t.join();
		}
		case "poolAsks" -> Executors.newFixedThreadPool(2).submit(Ask::ask).get();
		case "idlePool" -> {
			var pool = Executors.newFixedThreadPool(3);
			for (int i = 0; i < 3; i++)
				pool.submit(() -> {
				});
			Executors.newScheduledThreadPool(1).scheduleAtFixedRate(() -> {
			}, 1, 30, TimeUnit.SECONDS);
			ask();
		}
		case "sleeps" -> {
			pump();
			sleep(WORK);
		}
		case "burns" -> {
			pump();
			for (long end = System.currentTimeMillis() + WORK; System.currentTimeMillis() < end;) {
			}
		}
		case "accepts" -> {
			pump();
			new ServerSocket(0, 1, InetAddress.getLoopbackAddress()).accept();
		}
		case "polls" -> {
			pump();
			for (;;) {
				sleep(200);
				new File("/nothing").exists();
			}
		}
		case "child" -> {
			pump();
			new ProcessBuilder("sleep", "60").start().waitFor();
		}
		case "future" -> {
			pump();
			CompletableFuture.runAsync(() -> sleep(WORK)).join();
		}
		case "mainEnded" -> {
			pump();
			Executors.newFixedThreadPool(2).submit(() -> sleep(WORK));
			return; // the pool goes on
		}
		default -> System.exit(2);
		}
		System.exit(0);
	}
}
