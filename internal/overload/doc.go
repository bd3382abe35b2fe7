// Package overload tells how late a process runs, and decides what to do about it: whom to let in, and whom to spare.
package overload
