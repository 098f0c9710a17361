// Package comparison puts sandshell, and what people would otherwise use, into the same ten
// situations. Its test prints what each does as a table, which docs/comparison.md keeps:
//
//	make comparison
package comparison
