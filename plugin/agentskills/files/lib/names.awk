# Prints the names that are its arguments, and reads none of them.
BEGIN { for (i = 1; i < ARGC; i++) print visible(ARGV[i], 4096) }
