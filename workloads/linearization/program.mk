# Builds the program of a folder of this one: its Makefile says only `include ../program.mk`.
# Where make's own default stands, the compiler is gcc; CC and CFLAGS of the command line or the environment win.
# CFLAGS with -DBLOCK=32 (and so on) makes a program whose groups have that many threads.
ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS ?= -O2 -g

PROGRAM = $(basename $(wildcard *.c))

$(PROGRAM): $(PROGRAM).c $(wildcard ../../include/*.h) Makefile ../program.mk
	$(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) -pthread -I../../include -o $@ $< $(LDFLAGS)

clean:
	rm -f $(PROGRAM)

.PHONY: clean
