package harness

// killedDir is the variable that makes the test's binary a harness with that directory of results.
const killedDir = "SANDSHELL_HARNESS_DIR"

func runToBeKilled(dir string) int { return 1 }
