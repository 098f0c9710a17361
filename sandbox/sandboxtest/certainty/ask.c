// Programs that ask at the terminal, or work while a thread reads it. The argument says which.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORK = 60, CLOCKS = 7 };

static void *pump(void *unused) {
	char b[100];
	while (read(0, b, sizeof b) > 0) {
	}
	return 0;
}

static void *ask(void *unused) {
	char b[100];
	if (write(1, "name? ", 6) < 0 || read(0, b, sizeof b) < 0)
		exit(1);
	return 0;
}

// waits waits for a condition that nobody signals, until its time has come.
static void waits(long ms) {
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&m);
	while (pthread_cond_timedwait(&c, &m, &until) == 0) {
	}
}

static void *wait_once(void *unused) {
	waits(WORK * 1000);
	return 0;
}

static void *wait_often(void *ms) {
	for (;;)
		waits((long)ms);
	return 0;
}

static void *nap(void *unused) {
	for (;;)
		usleep(100000);
	return 0;
}

static void start(void *(*f)(void *), void *arg) {
	pthread_t t;
	pthread_create(&t, 0, f, arg);
}

static void join(void *(*f)(void *)) {
	pthread_t t;
	pthread_create(&t, 0, f, 0);
	pthread_join(t, 0);
}

// clocks starts threads that wake up now and then, as those of a runtime do.
static void clocks(void) {
	for (long i = 1; i <= CLOCKS; i++)
		start(wait_often, (void *)(i * i * 50));
}

static void *clocked_ask(void *unused) {
	clocks();
	return ask(0);
}

static void *clocked_work(void *unused) {
	clocks();
	start(pump, 0);
	return wait_once(0);
}

static void working(void) {
	puts("working");
	fflush(stdout);
}

static void on_alarm(int s) {
	if (write(1, "tick\n", 5) < 0)
		exit(1);
}

static void alarmed(void) {
	signal(SIGALRM, on_alarm);
	alarm(WORK);
}

int main(int n, char **args) {
	const char *what = n > 1 ? args[1] : "";
	if (!strcmp(what, "ask")) {
		ask(0);
	} else if (!strcmp(what, "join-ask")) {
		join(ask);
	} else if (!strcmp(what, "clocked-ask")) { // as java has it: main waits for the first thread
		join(clocked_ask);
	} else if (!strcmp(what, "ask-beside-wait")) {
		start(wait_once, 0);
		ask(0);
	} else if (!strcmp(what, "ask-beside-naps")) {
		start(nap, 0);
		ask(0);
	} else if (!strcmp(what, "alarmed-read")) {
		alarmed();
		pump(0);
	} else if (!strcmp(what, "wait")) {
		start(pump, 0);
		working();
		wait_once(0);
	} else if (!strcmp(what, "join-wait")) {
		start(pump, 0);
		working();
		join(wait_once);
	} else if (!strcmp(what, "clocked-work")) {
		working();
		join(clocked_work);
	} else if (!strcmp(what, "alarmed-pause")) {
		alarmed();
		start(pump, 0);
		working();
		pause();
	} else {
		return 2;
	}
	return 0;
}
