#include <stdio.h>
#include <stdlib.h>

/* Prints the primes below the argument. */
int main(int argc, char **argv)
{
	int max = argc > 1 ? atoi(argv[1]) : 100;
	for (int n = 2; n < max; n++) {
		int d = 2;
		while (d * d <= n && n % d != 0)
			d++;
		if (d * d > n)
			printf("%d\n", n);
	}
	return 0;
}
