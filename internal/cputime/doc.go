// Package cputime tells how much CPU time this process has spent.
package cputime
